/* schema.h: schema.sql, made part of the program by tools/embed.py. */
#ifndef TD_STORE_SCHEMA_H
#define TD_STORE_SCHEMA_H

extern const char td_store_schema[], td_store_schema_sha256[];

#endif
