-- Logins of model providers. `agent` is whose they are, empty for all agents; `body` JSON with the secret in it, as an
-- auth-profiles.json has it; `version` rises with each change, so that of two who refresh one login one wins.
CREATE TABLE auth_profiles (
    agent TEXT NOT NULL,
    id TEXT NOT NULL,
    provider TEXT NOT NULL,
    kind TEXT NOT NULL,
    body TEXT NOT NULL,
    version INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (agent, id)
) WITHOUT ROWID;
-- When each was last used, and until when it rests; JSON.
CREATE TABLE auth_health (
    agent TEXT NOT NULL,
    id TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (agent, id)
) WITHOUT ROWID;
-- The order that a person set for a provider; `ids` is a JSON list.
CREATE TABLE auth_orders (
    agent TEXT NOT NULL,
    provider TEXT NOT NULL,
    ids TEXT NOT NULL,
    PRIMARY KEY (agent, provider)
) WITHOUT ROWID;
-- Which login a conversation stays with, so that the provider's cache of it holds.
CREATE TABLE auth_pins (
    session TEXT NOT NULL,
    provider TEXT NOT NULL,
    profile TEXT NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (session, provider)
) WITHOUT ROWID;
CREATE INDEX auth_pins_at ON auth_pins (at);
