"""How a failed run is told on the wire."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from garra.core.errors import Failure, FailureKind

REASONS: Final[Mapping[FailureKind, str]] = {
    FailureKind.AUTH: "auth",
    FailureKind.NO_KEY: "auth",
    FailureKind.BILLING: "billing",
    FailureKind.RATE_LIMIT: "rate_limit",
    FailureKind.OVERLOADED: "overloaded",
    FailureKind.TIMEOUT: "timeout",
    FailureKind.NETWORK: "timeout",
    FailureKind.CUT: "timeout",
    FailureKind.NOT_FOUND: "model_not_found",
    FailureKind.REFUSED: "format",
    FailureKind.OVERFLOW: "context_overflow",
    FailureKind.EMPTY: "empty_response",
    FailureKind.SERVER: "server_error",
}
KINDS: Final[Mapping[FailureKind, str]] = {
    FailureKind.FILTERED: "refusal",
    FailureKind.TIMEOUT: "timeout",
    FailureKind.RATE_LIMIT: "rate_limit",
    FailureKind.OVERFLOW: "context_length",
}


def observation(failure: Failure | None, provider: str = "", model: str = "") -> dict[str, Any]:
    """`{provider, model, failoverReason, providerRuntimeFailureKind}` of a failure."""
    if failure is None:
        return {"provider": provider, "model": model}
    return {
        "provider": failure.provider or provider,
        "model": failure.model or model,
        "failoverReason": REASONS.get(failure.kind, "unknown"),
        "providerRuntimeFailureKind": failure.kind.value,
    }


def chat_kind(failure: Failure | None, *, timed_out: bool) -> str:
    """The `errorKind` of a `chat` event; empty for what has no name there."""
    if timed_out:
        return "timeout"
    return KINDS.get(failure.kind, "unknown") if failure else ""
