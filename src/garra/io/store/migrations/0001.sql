-- One row a session key; `entry` is its JSON as sessions.json shows it.
CREATE TABLE sessions (
    key TEXT PRIMARY KEY,
    session_id TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    updated_at INTEGER NOT NULL,
    label TEXT,
    archived INTEGER NOT NULL DEFAULT 0,
    pinned INTEGER NOT NULL DEFAULT 0,
    entry TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX sessions_by_time ON sessions (agent_id, archived, updated_at DESC);
CREATE INDEX sessions_by_id ON sessions (session_id);
CREATE INDEX sessions_by_label ON sessions (agent_id, label) WHERE label IS NOT NULL;

-- Small values of any part, each in its own space; `value` is JSON.
CREATE TABLE shelf (
    space TEXT NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (space, key)
) WITHOUT ROWID;

-- What has been seen once already, until it expires (milliseconds since 1970).
CREATE TABLE seen (
    space TEXT NOT NULL,
    key TEXT NOT NULL,
    expires INTEGER NOT NULL,
    PRIMARY KEY (space, key)
) WITHOUT ROWID;
CREATE INDEX seen_by_time ON seen (expires);
