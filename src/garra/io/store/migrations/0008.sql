-- How single turns went, the newest so many: when each step began and ended, in milliseconds since 1970. `body` is JSON
-- (`core.trace.Marks`) and holds no words of a message; `led_by` names the run that took this one's message along.
CREATE TABLE traces (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    run TEXT NOT NULL,
    session TEXT NOT NULL,
    agent TEXT NOT NULL,
    origin TEXT NOT NULL,
    started INTEGER NOT NULL,
    ended INTEGER NOT NULL,
    ending TEXT NOT NULL,
    led_by TEXT NOT NULL DEFAULT '',
    body BLOB NOT NULL
);
CREATE INDEX traces_run ON traces (run);
CREATE INDEX traces_session ON traces (session, seq);
