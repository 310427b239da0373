-- A recorded run: run.db beside the .safetensors files of its steps. Times are nanoseconds since the run began.
-- A step has a row here once it is over and whole; what belongs to the step under way may be here already.
CREATE TABLE fact(name TEXT PRIMARY KEY, value) WITHOUT ROWID;

CREATE TABLE step(
    ordinal INTEGER PRIMARY KEY,    -- 0, 1, 2 in the order of the run
    number INTEGER NOT NULL,        -- as the program counts
    begin_ns INTEGER NOT NULL, end_ns INTEGER NOT NULL,
    cpu_ns INTEGER NOT NULL,        -- time of all threads of the program
    rss INTEGER NOT NULL            -- bytes of memory the program holds at the end
);

-- The tree of scopes, by the way they were reached. 0 is the root and has no row.
CREATE TABLE scope(id INTEGER PRIMARY KEY, parent INTEGER NOT NULL, name TEXT NOT NULL);

-- Many calls of scopes in one row: `count` records of struct td_run_span, little-endian, in the order they ended.
CREATE TABLE span_block(id INTEGER PRIMARY KEY, step INTEGER NOT NULL, count INTEGER NOT NULL, data BLOB NOT NULL);

CREATE TABLE tensor(
    id INTEGER PRIMARY KEY,         -- in the order of execution
    step INTEGER NOT NULL,          -- ordinal
    name TEXT NOT NULL,
    scope INTEGER NOT NULL, thread INTEGER NOT NULL, time_ns INTEGER NOT NULL,
    dtype TEXT NOT NULL, shape TEXT NOT NULL,       -- shape: "2,3", as the program had it
    kind INTEGER NOT NULL,          -- enum td_keep
    file TEXT,                      -- where the values are, under `name`; NULL without values
    count INTEGER NOT NULL, finite INTEGER NOT NULL, nan INTEGER NOT NULL, inf INTEGER NOT NULL, zeros INTEGER NOT NULL,
    mean REAL, std REAL, min REAL, max REAL, absmax REAL, norm REAL,
    bins BLOB                       -- sketch: counts in equal bins over [min, max], 64 bits each
);

CREATE TABLE scalar(
    id INTEGER PRIMARY KEY, name TEXT NOT NULL,
    step INTEGER NOT NULL,          -- the number that came with it
    time_ns INTEGER NOT NULL, value REAL
);

-- Allocations and releases: `count` records of struct td_run_block, little-endian.
CREATE TABLE memory_block(id INTEGER PRIMARY KEY, step INTEGER NOT NULL, count INTEGER NOT NULL, data BLOB NOT NULL);
CREATE TABLE snapshot(id INTEGER PRIMARY KEY, name TEXT NOT NULL, step INTEGER NOT NULL, time_ns INTEGER NOT NULL);

-- What happened to the run: breakpoints hit, capture changed, recording ended early.
CREATE TABLE note(id INTEGER PRIMARY KEY, time_ns INTEGER NOT NULL, step INTEGER NOT NULL, kind TEXT NOT NULL, text TEXT NOT NULL);
