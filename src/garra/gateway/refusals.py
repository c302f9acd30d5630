"""Every way a connect is turned away: error, details for programs, close code and reason; OpenClaw's words."""

from __future__ import annotations

from typing import Any, Final

from garra.core.devices import NEEDS, Device, Pending, Reason
from garra.core.errors import GarraError, Unavailable, UserError
from garra.core.frames import PROTOCOL


class NotPaired(UserError):
    """The device must be approved, or there is none."""

    code = "NOT_PAIRED"


class Turned(Exception):
    """A connect that was turned away. `guessed`: it showed a wrong credential."""

    def __init__(
        self, error: GarraError, code: int = 1008, reason: str | None = None, *, guessed: bool = False
    ) -> None:
        super().__init__(error.message)
        self.error = error
        self.code = code
        self.reason = error.message if reason is None else reason
        self.guessed = guessed


HINTS: Final[dict[Reason, str]] = {
    "not-paired": "Approve this device from the pending pairing requests.",
    "role-upgrade": "Review the requested role upgrade, then approve the pending request.",
    "scope-upgrade": "Review the requested scopes, then approve the pending upgrade.",
    "metadata-upgrade": "Review the refreshed device details, then approve the pending request.",
}
HOW_IN: Final = "Show this gateway's token (gateway.auth.token of its configuration), or connect as a paired device."
WORDS: Final = {
    "AUTH_TOKEN_MISSING": ("token_missing", "gateway token missing (provide gateway auth token)"),
    "AUTH_TOKEN_MISMATCH": ("token_mismatch", "gateway token mismatch (provide gateway auth token)"),
    "AUTH_PASSWORD_MISSING": ("password_missing", "gateway password missing (provide gateway auth password)"),
    "AUTH_PASSWORD_MISMATCH": ("password_mismatch", "gateway password mismatch (provide gateway auth password)"),
    "AUTH_DEVICE_TOKEN_MISMATCH": (
        "device_token_mismatch",
        "device token mismatch (rotate/reissue device token)",
    ),
    "AUTH_SCOPE_MISMATCH": (
        "scope_mismatch",
        "device token scope mismatch (re-pair or approve scope upgrade)",
    ),
}
CLI_HINT: Final = {
    "AUTH_TOKEN_MISSING": "gateway token missing (use this gateway's gateway.auth.token or pair the device)",
    "AUTH_TOKEN_MISMATCH": "gateway token mismatch (use this gateway's gateway.auth.token or pair the device)",
}
DEVICE: Final = {
    "device-id-mismatch": ("DEVICE_AUTH_DEVICE_ID_MISMATCH", "device identity mismatch"),
    "device-signature-stale": ("DEVICE_AUTH_SIGNATURE_EXPIRED", "device signature expired"),
    "device-nonce-missing": ("DEVICE_AUTH_NONCE_REQUIRED", "device nonce required"),
    "device-nonce-mismatch": ("DEVICE_AUTH_NONCE_MISMATCH", "device nonce mismatch"),
    "device-signature": ("DEVICE_AUTH_SIGNATURE_INVALID", "device signature invalid"),
}


def version(low: int, high: int) -> Turned:
    """No version that both speak."""
    details = {
        "code": "PROTOCOL_MISMATCH",
        "clientMinProtocol": low,
        "clientMaxProtocol": high,
        "expectedProtocol": PROTOCOL,
        "minimumProbeProtocol": PROTOCOL - 1,
    }
    return Turned(UserError("protocol mismatch", details=details), 1002)


def role(name: str) -> Turned:
    """A role that nobody may take here."""
    if name == "worker":
        return Turned(UserError("invalid-handshake"))
    return Turned(UserError("invalid role"))


def origin(reason: str) -> Turned:
    """A page that is not ours."""
    return Turned(
        UserError(
            "origin not allowed (open the Control UI from the gateway host or allow it in "
            "gateway.controlUi.allowedOrigins)",
            details={"code": "CONTROL_UI_ORIGIN_NOT_ALLOWED", "reason": reason},
        )
    )


def device(flaw: str) -> Turned:
    """A device whose claim or signature is wrong."""
    code, message = DEVICE[flaw]
    return Turned(UserError(message, details={"code": code, "reason": flaw}))


def device_required() -> Turned:
    """Neither a credential nor a device."""
    details = {"code": "DEVICE_IDENTITY_REQUIRED", "remediationHint": HOW_IN}
    return Turned(NotPaired("device identity required", details=details))


def ui_device_required() -> Turned:
    """A user interface must be a device."""
    message = "control ui requires device identity (use HTTPS or localhost secure context)"
    return Turned(UserError(message, details={"code": "CONTROL_UI_DEVICE_IDENTITY_REQUIRED"}))


def rate_limited(wait_ms: int) -> Turned:
    """Too many wrong credentials from one address."""
    details = _details("AUTH_RATE_LIMITED", "rate_limited", "wait_then_retry", device=False)
    message = "unauthorized: too many failed authentication attempts (retry later)"
    return Turned(Unavailable(message, details={**details, "retryAfterMs": wait_ms}, retryable=True))


def mismatch(mode: str, client: str, *, device: bool) -> Turned:
    """The shared secret is wrong."""
    return _unauthorized("AUTH_PASSWORD_MISMATCH" if mode == "password" else "AUTH_TOKEN_MISMATCH", client, device)


def rejected(code: str, mode: str, client: str) -> Turned:
    """A device that may not come in by what it showed."""
    if mode == "password":
        code = code.replace("AUTH_TOKEN_", "AUTH_PASSWORD_")
    return _unauthorized(code, client, device=True)


def _unauthorized(code: str, client: str, device: bool) -> Turned:  # noqa: FBT001 - one fact of the refusal
    why, text = WORDS[code]
    if client == "cli":
        text = CLI_HINT.get(code, text)
    wrong = code.endswith("TOKEN_MISMATCH") or code == "AUTH_PASSWORD_MISMATCH"
    retry = device and code in ("AUTH_TOKEN_MISMATCH", "AUTH_PASSWORD_MISMATCH")
    step = "retry_with_device_token" if retry else "update_auth_credentials" if wrong else "update_auth_configuration"
    error = UserError(f"unauthorized: {text}", details=_details(code, why, step, device=retry))
    return Turned(error, guessed=wrong)


def _details(code: str, why: str, step: str, *, device: bool) -> dict[str, Any]:
    return {"code": code, "authReason": why, "canRetryWithDeviceToken": device, "recommendedNextStep": step}


def pairing(why: Reason, request: Pending, known: Device | None) -> Turned:
    """The owner must approve it first."""
    details: dict[str, Any] = {
        "code": "PAIRING_REQUIRED",
        "reason": why,
        "requestId": request.request_id,
        "remediationHint": HINTS[why],
        "deviceId": request.device_id,
        "requestedRole": request.role,
        "requestedScopes": list(request.scopes),
    }
    if known:
        details["approvedRoles"] = sorted(known.grants)
        grant = known.grants.get(request.role)
        details["approvedScopes"] = list(grant.scopes) if grant else []
    message = f"pairing required: {NEEDS[why]}"
    return Turned(NotPaired(message, details=details), reason=f"{message} (requestId: {request.request_id})")
