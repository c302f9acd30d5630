"""The names of things. Each is text; the type keeps one from being taken for another."""

from __future__ import annotations

from typing import NewType

AgentId = NewType("AgentId", str)
"""An agent of the configuration, lower case, such as `main`."""

SessionKey = NewType("SessionKey", str)
"""Where a conversation lives, such as `agent:main:main`; the grammar is in `core.keys`."""

SessionId = NewType("SessionId", str)
"""One transcript file; a key may move on to a new one. Matches `core.keys.SESSION_ID`."""

RunId = NewType("RunId", str)
"""One run of an agent; for a client's request it is that request's idempotency key."""

CallId = NewType("CallId", str)
"""One tool call inside a run, in our own form; a provider's form is made at its edge."""
