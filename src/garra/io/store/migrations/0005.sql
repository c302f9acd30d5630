-- What model calls cost. A row for each call, kept for ninety days; what each day came to, kept for ever. `root` is the
-- run that a person or a job began, `sender` who asked (empty: an operator), `cost` US dollars, NULL where no price is
-- known, `tools` the names of the tools an answer asked for; times in milliseconds since 1970, `day` the owner's.
CREATE TABLE usage_calls (
    id INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    run TEXT NOT NULL,
    root TEXT NOT NULL,
    session TEXT NOT NULL,
    sender TEXT NOT NULL,
    agent TEXT NOT NULL,
    job TEXT NOT NULL,
    provider TEXT NOT NULL,
    model TEXT NOT NULL,
    input INTEGER NOT NULL,
    output INTEGER NOT NULL,
    cache_read INTEGER NOT NULL,
    cache_write INTEGER NOT NULL,
    cost REAL,
    failed INTEGER NOT NULL DEFAULT 0,
    tools TEXT NOT NULL DEFAULT ''
);
CREATE INDEX usage_calls_at ON usage_calls (at);
CREATE INDEX usage_calls_root ON usage_calls (root);
CREATE TABLE usage_days (
    day TEXT NOT NULL,
    session TEXT NOT NULL,
    sender TEXT NOT NULL,
    agent TEXT NOT NULL,
    job TEXT NOT NULL,
    provider TEXT NOT NULL,
    model TEXT NOT NULL,
    calls INTEGER NOT NULL,
    input INTEGER NOT NULL,
    output INTEGER NOT NULL,
    cache_read INTEGER NOT NULL,
    cache_write INTEGER NOT NULL,
    cost REAL NOT NULL,
    unpriced INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    PRIMARY KEY (day, session, sender, agent, job, provider, model)
) WITHOUT ROWID;
