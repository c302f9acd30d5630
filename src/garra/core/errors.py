"""Every error Garra raises on purpose. Each says who can mend it.

    GarraError                code, message, retryable
    ├── UserError             a person reads it: what is wrong, where, how to mend it
    │   ├── ConfigInvalid     the configuration does not fit its schema
    │   ├── Conflict          what was to be changed is no longer what the caller saw
    │   ├── Forbidden         the caller's rights do not reach that far
    │   ├── NotFound          no such session, agent, method, file …
    │   └── Unavailable       not now: try again later
    ├── ToolFailed            the model reads it and may try another way
    │   └── BadArguments      the model's arguments do not fit the tool's schema
    └── RunFailed             ends the run; carries a `Failure`

Codes are stable: clients of the wire protocol compare them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class GarraError(Exception):
    """The root. `message` is one line, without secrets; `details` is JSON for programs."""

    code = "INTERNAL"

    def __init__(self, message: str, *, details: dict[str, Any] | None = None, retryable: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.details = details
        self.retryable = retryable


class UserError(GarraError):
    """A person reads it, so it says what to do next."""

    code = "INVALID_REQUEST"


class ConfigInvalid(UserError):
    """The configuration does not fit its schema; `details["issues"]` lists path and message of each fault."""


class Conflict(UserError):
    """What was to be changed is no longer what the caller saw (a stale hash, a reused key, a held lock)."""


class Forbidden(UserError):
    """The caller's rights do not reach that far."""

    code = "FORBIDDEN"


class NotFound(UserError):
    """What was named does not exist."""


class Unavailable(UserError):
    """It cannot be done now; trying again later may help."""

    code = "UNAVAILABLE"


class ToolFailed(GarraError):
    """A tool could not do what was asked; the model reads the message and may try another way."""

    code = "TOOL_FAILED"


class BadArguments(ToolFailed):
    """The model's arguments do not fit the tool's schema; the message names the path and the fault."""

    code = "ARGUMENT_VALIDATION"


class FailureKind(StrEnum):
    """Why a model call failed: the one table that retry, failover and the user's line are decided by."""

    AUTH = "auth"
    BILLING = "billing"
    RATE_LIMIT = "rate_limit"
    OVERLOADED = "overloaded"
    TIMEOUT = "timeout"
    NETWORK = "network"
    NOT_FOUND = "model_not_found"
    REFUSED = "bad_request"
    OVERFLOW = "context_overflow"
    FILTERED = "content_filter"
    CUT = "cut_stream"
    EMPTY = "empty"
    SERVER = "server_error"
    NO_KEY = "missing_key"
    CANCELLED = "cancelled"
    TOOL_LOOP = "tool_loop"
    BUDGET = "budget"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Failure:
    """One failed model call. `message` is one line for a person, without secrets; `status` is HTTP's."""

    kind: FailureKind
    message: str
    status: int | None = None
    retry_after_ms: int | None = None
    provider: str = ""
    model: str = ""


class RunFailed(GarraError):
    """Ends the run."""

    code = "UNAVAILABLE"

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message, details={"kind": failure.kind.value})
        self.failure = failure
