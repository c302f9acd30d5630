-- What came in, once each. `seq` is the order of arrival, `body` the event as JSON; times in milliseconds since 1970.
CREATE TABLE inbox (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    channel TEXT NOT NULL,
    account TEXT NOT NULL,
    chat TEXT NOT NULL,
    thread TEXT NOT NULL,
    event TEXT NOT NULL,
    event_id TEXT NOT NULL,
    own INTEGER NOT NULL DEFAULT 0,
    state TEXT NOT NULL,
    received INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    due INTEGER NOT NULL DEFAULT 0,
    tries INTEGER NOT NULL DEFAULT 0,
    run_id TEXT NOT NULL DEFAULT '',
    session_key TEXT NOT NULL DEFAULT '',
    why TEXT NOT NULL DEFAULT '',
    body TEXT NOT NULL
);
CREATE UNIQUE INDEX inbox_once ON inbox (channel, account, chat, event, event_id);
CREATE INDEX inbox_open ON inbox (seq) WHERE state IN ('pending', 'claimed', 'adopted');
CREATE INDEX inbox_peer ON inbox (channel, account, chat) WHERE state = 'pending';
CREATE INDEX inbox_run ON inbox (run_id) WHERE run_id <> '';
CREATE INDEX inbox_time ON inbox (updated);

-- What goes out, in the order of `place` within a chat's thread. `key` is the same for each try of one message.
CREATE TABLE outbox (
    place INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,
    channel TEXT NOT NULL,
    account TEXT NOT NULL,
    chat TEXT NOT NULL,
    thread TEXT NOT NULL,
    state TEXT NOT NULL,
    created INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    due INTEGER NOT NULL DEFAULT 0,
    tries INTEGER NOT NULL DEFAULT 0,
    stage INTEGER NOT NULL DEFAULT 0,
    inbox_id TEXT NOT NULL DEFAULT '',
    platform_id TEXT NOT NULL DEFAULT '',
    reason TEXT NOT NULL DEFAULT '',
    body TEXT NOT NULL
);
CREATE INDEX outbox_open ON outbox (channel, account, chat, thread, place) WHERE state IN ('pending', 'sending');
CREATE INDEX outbox_answers ON outbox (inbox_id) WHERE inbox_id <> '';
CREATE INDEX outbox_platform ON outbox (channel, account, chat, platform_id) WHERE platform_id <> '';
CREATE INDEX outbox_time ON outbox (updated);

-- The stations of a message's way, each once as it was passed; `message` is an inbox id or an outbox key.
CREATE TABLE stations (
    seq INTEGER PRIMARY KEY,
    message TEXT NOT NULL,
    at INTEGER NOT NULL,
    station TEXT NOT NULL,
    detail TEXT NOT NULL DEFAULT ''
);
CREATE INDEX stations_of ON stations (message, seq);
