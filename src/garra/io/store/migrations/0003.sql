-- Questions to a person. `phase` is where each stands, `used` whether its answer was acted upon, `body` the whole as
-- JSON; times in milliseconds since 1970.
CREATE TABLE approvals (
    id TEXT PRIMARY KEY,
    phase TEXT NOT NULL,
    used INTEGER NOT NULL DEFAULT 0,
    asked INTEGER NOT NULL,
    ended INTEGER NOT NULL DEFAULT 0,
    expires INTEGER NOT NULL,
    body TEXT NOT NULL
);
CREATE INDEX approvals_open ON approvals (asked) WHERE used = 0;
CREATE INDEX approvals_ended ON approvals (ended, id);
