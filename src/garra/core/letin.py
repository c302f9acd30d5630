"""A device that has no browser of its own logs in: a code is shown, which a person enters elsewhere (RFC 8628)."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from garra.core.oauth import Issuer, Refused, Tokens, object_of, refused, safe, tokens
from garra.core.value import frozen

INTERVAL_MS: Final = 5_000
SLOWER_MS: Final = 5_000
LEAST_MS: Final = 1_000
MOST_MS: Final = 60_000
DEVICE_MS: Final = 900_000
"""How long a device's code holds where the issuer does not say."""


@frozen
class Device:
    """What a person is shown, and what the device asks with. Milliseconds."""

    user_code: str
    verify_url: str
    device_code: str
    interval_ms: int
    until_ms: int
    whole_url: str = ""


def device_form(issuer: Issuer) -> dict[str, str]:
    """What a device asks a code with."""
    form = {"client_id": issuer.client_id}
    scope = " ".join(issuer.scopes) if issuer.style == "standard" else ""
    return form | ({"scope": scope} if scope else {})


def device(issuer: Issuer, status: int, body: bytes, now_ms: int) -> Device | Refused:
    """What the issuer answered to that."""
    told = object_of(body)
    if status != 200 or "error" in told:
        if status == 404:  # as OpenAI's accounts say it
            return Refused("refused", "this issuer lets no device in by a code; log in with a browser")
        return refused(status, told)
    user = told.get("user_code") or told.get("usercode")
    own = told.get("device_code") or told.get("device_auth_id")
    verify = told.get("verification_uri") or told.get("verification_url") or issuer.verify_url
    if not (isinstance(user, str) and isinstance(own, str) and isinstance(verify, str) and safe(verify)):
        return Refused("refused", "the issuer answered without a code")
    interval = _span(told.get("interval"), INTERVAL_MS)
    until = now_ms + _span(told.get("expires_in"), DEVICE_MS)
    whole = told.get("verification_uri_complete")
    return Device(user, verify, own, interval, until, whole if isinstance(whole, str) and safe(whole) else "")


def _span(value: object, usual_ms: int) -> int:
    """Seconds as milliseconds."""
    seconds = float(value) if isinstance(value, str) and value.isdecimal() else value
    fine = isinstance(seconds, int | float) and not isinstance(seconds, bool) and 0 < seconds < 1e7
    return int(seconds * 1_000) if fine and isinstance(seconds, int | float) else usual_ms


def poll_form(issuer: Issuer, device: Device) -> dict[str, str]:
    """What a device asks with whether it has been let in."""
    if issuer.style == "openai":
        return {"device_auth_id": device.device_code, "user_code": device.user_code}
    return {
        "grant_type": "urn:ietf:params:oauth:grant-type:device_code",
        "device_code": device.device_code,
        "client_id": issuer.client_id,
    }


@frozen
class Granted:
    """OpenAI's accounts give a device a code with its verifier, which is then exchanged."""

    code: str
    verifier: str


def polled(issuer: Issuer, status: int, body: bytes, now_ms: int) -> Tokens | Granted | Refused:
    """What an answer to a device means."""
    if issuer.style != "openai":
        return tokens(status, body, now_ms)
    told = object_of(body)
    if status in {403, 404}:
        return Refused("pending", "nobody has entered the code yet")
    if status != 200:
        return refused(status, told)
    found, verifier = told.get("authorization_code"), told.get("code_verifier")
    if not isinstance(found, str) or not isinstance(verifier, str):
        return Refused("refused", "the issuer answered without a code")
    return Granted(found, verifier)


@frozen
class Waiting:
    """A device that waits. `interval_ms` grows with each `slow_down`; `until_ms` is when its code ends."""

    interval_ms: int
    until_ms: int


@frozen
class Ask:
    """Ask again after a pause."""

    after_ms: int


@frozen
class GiveUp:
    """Why it will not be let in."""

    words: str


def waiting(device: Device) -> Waiting:
    return Waiting(max(device.interval_ms, LEAST_MS), device.until_ms)


def step(state: Waiting, event: Refused, now_ms: int) -> tuple[Waiting, Ask | GiveUp]:
    """What a device that was not let in does next. An answer that never came is `passing`."""
    match event.why:
        case "pending":
            pass
        case "slow":
            state = replace(state, interval_ms=state.interval_ms + SLOWER_MS)
        case "passing":
            state = replace(state, interval_ms=min(state.interval_ms * 2, max(MOST_MS, state.interval_ms)))
        case "expired":
            return state, GiveUp(OVER)
        case _:
            return state, GiveUp(event.words)
    if now_ms + state.interval_ms >= state.until_ms:
        return state, GiveUp(OVER)
    return state, Ask(state.interval_ms)


OVER: Final = "the code was not entered in time; ask for a new one"
