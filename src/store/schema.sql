-- The first form of the store. A later form is a further step in store_open.c; this file then stays as it is.
--
-- Uploads are pointed to by the comparisons that use them: one that is in use cannot be removed. Results and
-- notes may be megabytes and lie apart from the rows that lists read.

CREATE TABLE upload (
    id      TEXT PRIMARY KEY,
    name    TEXT NOT NULL,
    sha256  TEXT NOT NULL,
    bytes   INTEGER NOT NULL,
    created INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE comparison (
    number   INTEGER PRIMARY KEY AUTOINCREMENT, -- in the order they came; seconds do not tell
    id       TEXT NOT NULL UNIQUE,
    title    TEXT NOT NULL,
    session  TEXT NOT NULL,
    status   TEXT NOT NULL CHECK (status IN ('queued', 'done', 'failed', 'cancelled')),
    error    TEXT,
    settings TEXT NOT NULL,
    summary  TEXT,
    created  INTEGER NOT NULL,
    a_name   TEXT NOT NULL,
    a_path   TEXT NOT NULL,
    a_upload TEXT REFERENCES upload (id),
    a_stamp  TEXT NOT NULL,
    b_name   TEXT,
    b_path   TEXT, -- NULL: a is explored by itself
    b_upload TEXT REFERENCES upload (id),
    b_stamp  TEXT
) STRICT;

CREATE INDEX comparison_a_upload ON comparison (a_upload) WHERE a_upload IS NOT NULL;
CREATE INDEX comparison_b_upload ON comparison (b_upload) WHERE b_upload IS NOT NULL;

CREATE TABLE result (
    comparison INTEGER PRIMARY KEY REFERENCES comparison (number) ON DELETE CASCADE,
    document   BLOB NOT NULL
) STRICT;

CREATE TABLE note (
    comparison INTEGER PRIMARY KEY REFERENCES comparison (number) ON DELETE CASCADE,
    document   BLOB NOT NULL
) STRICT;
