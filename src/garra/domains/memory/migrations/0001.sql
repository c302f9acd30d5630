-- Everything here is made from files and can be made again from them.
CREATE TABLE files (
    path TEXT PRIMARY KEY,
    source TEXT NOT NULL,
    session TEXT NOT NULL DEFAULT '',
    size INTEGER NOT NULL,
    changed INTEGER NOT NULL,
    digest TEXT NOT NULL DEFAULT '',
    state TEXT NOT NULL DEFAULT ''
) WITHOUT ROWID;

CREATE TABLE chunks (
    id INTEGER PRIMARY KEY,
    path TEXT NOT NULL,
    source TEXT NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    text TEXT NOT NULL,
    owner TEXT NOT NULL,
    session TEXT NOT NULL DEFAULT '',
    created INTEGER NOT NULL,
    marks TEXT NOT NULL DEFAULT '',
    hash TEXT NOT NULL DEFAULT ''
);
CREATE INDEX chunks_path ON chunks (path, first);
CREATE INDEX chunks_owner ON chunks (owner);
CREATE INDEX chunks_hash ON chunks (hash, created);

CREATE VIRTUAL TABLE words USING fts5 (text, tokenize = 'porter unicode61 remove_diacritics 2');

CREATE TABLE vectors (
    model TEXT NOT NULL,
    hash TEXT NOT NULL,
    vector BLOB NOT NULL,
    PRIMARY KEY (model, hash)
) WITHOUT ROWID;

CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
