"""What a person is asked before something is done, and what he may answer."""

from __future__ import annotations

from typing import Literal

from garra.core.execrules import Entry
from garra.core.ids import AgentId, RunId, SessionKey
from garra.core.value import frozen

Choice = Literal["allow-once", "allow-always", "deny"]
Kind = Literal["exec", "tool", "egress"]

LIFE_MS = 1_800_000
"""How long a question waits for its answer."""


@frozen
class Question:
    """One thing that needs a person's yes.

    `subject` is shown whole: the command, or the tool with its arguments, or the host that is to be reached. `bound`
    is a hash of all that the answer holds for; who acts on the answer computes it again first. `remembers` says in
    words what `allow-always` will let pass from then on; it is empty where that is not among the `choices`. `why` are
    the reasons to ask, a line each. `requester` is the immutable id of whoever asked for the turn, namespaced as
    `channel:account:id`; empty for the owner at his own screen. `argv`, `cwd`, `host`, `env` (names only) are of kind
    exec. `fallback` is what holds when nobody answers in time. `entries` are what `allow-always` adds to the agent's
    allowlist (`execrules.with_entry` for each), the very thing that `remembers` says in words.
    """

    kind: Kind
    subject: str
    bound: str
    session_key: SessionKey
    agent_id: AgentId
    run_id: RunId
    call_id: str
    choices: tuple[Choice, ...] = ("allow-once", "deny")
    remembers: str = ""
    why: tuple[str, ...] = ()
    requester: str = ""
    argv: tuple[str, ...] = ()
    cwd: str = ""
    host: str = ""
    env: tuple[str, ...] = ()
    fallback: Choice = "deny"
    life_ms: int = LIFE_MS
    entries: tuple[Entry, ...] = ()


@frozen
class Answer:
    """What was said. `by` names who said it; `reason` is what the model reads when it is no."""

    choice: Choice
    by: str = ""
    reason: str = ""

    @property
    def allowed(self) -> bool:
        return self.choice != "deny"
