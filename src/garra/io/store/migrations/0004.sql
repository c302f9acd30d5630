-- Sub-agents: `run_id` is of a child's first run, `session_key` its session, `parent_key` the one that started it.
-- `state` is queued, running, waiting, ended or told; `body` the whole as JSON; times in milliseconds since 1970.
CREATE TABLE subagents (
    run_id TEXT PRIMARY KEY,
    session_key TEXT NOT NULL UNIQUE,
    parent_key TEXT NOT NULL,
    state TEXT NOT NULL,
    created INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    body TEXT NOT NULL
);
CREATE INDEX subagents_parent ON subagents (parent_key);
CREATE INDEX subagents_time ON subagents (created);
