/* flame_script.h: page/flame.js, made part of the program by tools/embed.py. */
#ifndef TD_REPORT_FLAME_SCRIPT_H
#define TD_REPORT_FLAME_SCRIPT_H

extern const char td_flame_script[], td_flame_script_sha256[];

#endif
