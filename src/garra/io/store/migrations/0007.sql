-- What was looked for and found again and again: one line of a diary or one thing that was said, by the digest of its
-- words, which stand here nowhere. `queries` and `days` are JSON lists: digests of questions, and days of the owner's;
-- `score` is a sum; `light` and `rem` count how often each phase of dreaming met it, the last time `phase_at`.
CREATE TABLE recalls (
    agent TEXT NOT NULL,
    digest TEXT NOT NULL,
    path TEXT NOT NULL,
    line INTEGER NOT NULL,
    count INTEGER NOT NULL,
    score REAL NOT NULL,
    queries TEXT NOT NULL,
    days TEXT NOT NULL,
    first_at INTEGER NOT NULL,
    last_at INTEGER NOT NULL,
    light INTEGER NOT NULL DEFAULT 0,
    rem INTEGER NOT NULL DEFAULT 0,
    phase_at INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (agent, digest)
) WITHOUT ROWID;
CREATE INDEX recalls_last ON recalls (agent, last_at);
-- What dreaming proposes for MEMORY.md. `state` is proposed, applied, refused or undone; `outside` tells that some of it
-- came from somebody else or from outside; `body` is JSON: the lines, each with where it comes from and its scores.
CREATE TABLE dreams (
    id TEXT PRIMARY KEY,
    agent TEXT NOT NULL,
    at INTEGER NOT NULL,
    state TEXT NOT NULL,
    outside INTEGER NOT NULL,
    body TEXT NOT NULL,
    decided_at INTEGER NOT NULL DEFAULT 0,
    decided_by TEXT NOT NULL DEFAULT ''
) WITHOUT ROWID;
CREATE INDEX dreams_at ON dreams (agent, at);
