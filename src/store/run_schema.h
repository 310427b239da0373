/* run_schema.h: run_schema.sql, made part of the library by tools/embed.py. */
#ifndef TD_STORE_RUN_SCHEMA_H
#define TD_STORE_RUN_SCHEMA_H

extern const char td_run_schema[], td_run_schema_sha256[];

#endif
