"""How long a login rests after a fault, and for which model: functions of values.

A rate limit, a silence or an overload rests one model of the login: 30 s, then 1 min, then 5 min; or as long as the
server says, within an hour. A second model that is limited meanwhile rests the whole login. No credit rests it whole:
5, 10, 20, 24 hours; a key that was revoked 10 minutes to an hour. What rests no login: a refused request, a cut
answer, a fault of the server, a network that is away.

Faults of calls that began before the rest did are the same outage and do not lengthen it. When a rest is over, nothing
of it is left.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any, Final

from garra.core.errors import Failure, FailureKind
from garra.core.value import frozen

_Kind = FailureKind
LADDER_MS: Final = (30_000, 60_000, 300_000)
ASKED_MS: Final = (1_000, 3_600_000)
"""Between which bounds a server's own word counts."""
PROBE_MS: Final = 30_000
"""A provider whose logins all rest is tried once in so long."""
HOUR_MS: Final = 3_600_000
MINUTE_MS: Final = 60_000

_OF_MODEL: Final = frozenset({_Kind.RATE_LIMIT, _Kind.TIMEOUT, _Kind.OVERLOADED, _Kind.NOT_FOUND})
_PASSED: Final = frozenset({_Kind.REFUSED, _Kind.OVERFLOW, _Kind.FILTERED, _Kind.CUT, _Kind.EMPTY})
_REVOKED: Final = r"revoked|deactivated|disabled|suspended|terminated|account.{0,20}(closed|banned)"
_CLOSED: Final = frozenset({_Kind.BILLING.value, "auth_permanent"})
"""Rests in which a call would be in vain; in others it is made where nothing else can be done."""


@frozen
class Rules:
    """What the owner may set: the first and the longest rest for want of credit, in hours."""

    billing_hours: float = 5.0
    billing_max_hours: float = 24.0


@frozen
class Rest:
    """`reason` is the fault's kind; `errors` how many in a row; moments in milliseconds since 1970. `firm`: the server
    itself said how long, or a second model was limited, too.
    """

    reason: str
    since_ms: int
    until_ms: int
    errors: int = 1
    firm: bool = False


@frozen
class Health:
    """One login's. `whole` rests all its models, `models` single ones."""

    used_ms: int = 0
    whole: Rest | None = None
    models: Mapping[str, Rest] = field(default_factory=dict)


@frozen
class Fault:
    """A call that failed: when it began, and when that was known."""

    model: str
    failure: Failure
    began_ms: int
    now_ms: int


def failed(health: Health, fault: Fault, rules: Rules = Rules()) -> Health:  # noqa: B008 - a frozen value
    """The health after a fault."""
    kind, now = fault.failure.kind, fault.now_ms
    if kind in (_Kind.BILLING, _Kind.AUTH):
        reason = _reason(fault.failure)
        return replace(health, whole=_longer(_live(health.whole, now), fault, reason, rules) or health.whole)
    if kind in _PASSED:
        return _accepted(health, fault.model)
    if kind not in _OF_MODEL:
        return health
    resting = {model: rest for model, rest in health.models.items() if rest.until_ms > now}
    rest = _longer(resting.get(fault.model), fault, kind.value, rules)
    if rest is None:
        return health
    others = [each for model, each in resting.items() if model != fault.model and each.reason == _Kind.RATE_LIMIT]
    models = {**resting, fault.model: rest}
    if kind is not _Kind.RATE_LIMIT or not others:
        return replace(health, models=models)
    whole = _longer(_live(health.whole, now), fault, kind.value, rules)
    return replace(health, whole=replace(whole, firm=True) if whole is not None else health.whole, models=models)


def _accepted(health: Health, model: str) -> Health:
    """The call got past key, credit and limits, however it ended then: what rested for want of those is well."""
    rests = {name: rest for name, rest in health.models.items() if name != model or not closed(rest)}
    if health.whole is None and len(rests) == len(health.models):
        return health
    return replace(health, whole=None, models=rests)


def _reason(failure: Failure) -> str:
    revoked = failure.kind is _Kind.AUTH and re.search(_REVOKED, failure.message, re.I)
    return "auth_permanent" if revoked else failure.kind.value


def _live(rest: Rest | None, now_ms: int) -> Rest | None:
    return rest if rest is not None and rest.until_ms > now_ms else None


def _longer(rest: Rest | None, fault: Fault, reason: str, rules: Rules) -> Rest | None:
    """The rest after one more fault; None where it belongs to the same outage."""
    if rest is not None and fault.began_ms < rest.since_ms:
        return None
    errors = rest.errors + 1 if rest is not None else 1
    asked = fault.failure.retry_after_ms
    if asked is not None and reason != _Kind.BILLING:
        wait = max(ASKED_MS[0], min(asked, ASKED_MS[1]))
    else:
        wait = _wait(reason, errors, rules)
    return Rest(reason, fault.now_ms, fault.now_ms + wait, errors, asked is not None)


def _wait(reason: str, errors: int, rules: Rules) -> int:
    """How long the rest number `errors` is."""
    doubled = 1 << min(errors - 1, 16)
    if reason == _Kind.BILLING:
        return round(min(rules.billing_hours * doubled, rules.billing_max_hours) * HOUR_MS)
    if reason == "auth_permanent":
        return min(10 * doubled, 60) * MINUTE_MS
    return LADDER_MS[min(errors, len(LADDER_MS)) - 1]


def answered(health: Health, model: str, now_ms: int) -> Health:
    """The health after an answer: what rested is well again."""
    models = {name: rest for name, rest in health.models.items() if name != model and rest.until_ms > now_ms}
    return Health(now_ms, None, models)


def rest(health: Health, model: str, now_ms: int) -> Rest | None:
    """The rest that holds for a model now, the longest where there are two."""
    live = [each for each in (health.whole, health.models.get(model)) if each is not None and each.until_ms > now_ms]
    return max(live, key=lambda each: each.until_ms, default=None)


def closed(rest: Rest) -> bool:
    """Whether it is in vain to call before the end. A key that was refused once may have been a slip of the server, and
    how long a limit holds is a guess where nobody said so.
    """
    limited = rest.reason == _Kind.RATE_LIMIT and rest.firm
    return limited or rest.reason in _CLOSED or (rest.reason == _Kind.AUTH and rest.errors > 1)


def may_probe(last_ms: int | None, now_ms: int) -> bool:
    """Whether a provider at rest may be tried: once in 30 s. `last_ms` is when it last was."""
    return last_ms is None or now_ms - last_ms >= PROBE_MS


def health_json(health: Health) -> dict[str, Any]:
    """As it is stored, with the original's names where it has them."""
    body: dict[str, Any] = {"lastUsed": health.used_ms}
    if health.whole is not None:
        body |= {"cooldownUntil": health.whole.until_ms, "whole": _rest_json(health.whole)}
    if health.models:
        body["models"] = {model: _rest_json(each) for model, each in health.models.items()}
    return body


def health_from(body: object) -> Health:
    """The inverse; what does not read is left out."""
    if not isinstance(body, Mapping):
        return Health()
    used, models = body.get("lastUsed"), body.get("models")
    rests = {str(name): _rest_from(each) for name, each in models.items()} if isinstance(models, Mapping) else {}
    return Health(
        used if isinstance(used, int) else 0,
        _rest_from(body.get("whole")),
        {name: each for name, each in rests.items() if each is not None},
    )


def _rest_json(rest: Rest) -> dict[str, Any]:
    return {"reason": rest.reason, "since": rest.since_ms, "until": rest.until_ms, "errorCount": rest.errors,
            "firm": rest.firm}  # fmt: skip


def _rest_from(body: object) -> Rest | None:
    if not isinstance(body, Mapping):
        return None
    reason, since, until, errors = (body.get(name) for name in ("reason", "since", "until", "errorCount"))
    if not (isinstance(reason, str) and isinstance(since, int) and isinstance(until, int) and isinstance(errors, int)):
        return None
    return Rest(reason, since, until, errors, body.get("firm") is True)
