"""OAuth without its acts: addresses, and what an issuer's answers mean.

RFC 6749, 7636 (PKCE, S256 only), 8252 (the answer comes to this machine); devices are in `core.letin`.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import field
from typing import Any, Final, Literal
from urllib.parse import parse_qs, urlencode, urlsplit

from garra.core.errors import Forbidden, UserError
from garra.core.secret import Secret
from garra.core.value import frozen

Style = Literal["standard", "openai"]
"""How a device asks: as RFC 8628 has it, or as OpenAI's accounts have it."""
LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "::1"})
LONGEST: Final = 300


@frozen
class Issuer:
    """Who gives a login. `redirect_url` is where a browser brings the code; `device_redirect_url` what OpenAI's device
    login names in its place. `params` are added to the address that a person opens. `json` says how tokens are asked
    for: as JSON, else as a form.
    """

    client_id: str
    token_url: str
    authorize_url: str = ""
    device_url: str = ""
    device_token_url: str = ""
    device_redirect_url: str = ""
    verify_url: str = ""
    redirect_url: str = "http://localhost:1455/auth/callback"
    scopes: tuple[str, ...] = ()
    params: Mapping[str, str] = field(default_factory=dict)
    style: Style = "standard"
    json: bool = False

    @property
    def origin(self) -> str:
        """The one place that may see a refresh token which came from here."""
        parts = urlsplit(self.token_url)
        return f"{parts.scheme}://{parts.netloc}".lower()


def issuer(body: Mapping[str, Any], where: str) -> Issuer:
    """An issuer as data has it; `where` names it in what is said. Raises UserError."""
    texts = {name: str(body[name]) for name in _TEXTS if name in body}
    for name, text in texts.items():
        if name.endswith("_url") and not safe(text):
            raise UserError(f"{where}.{name}: {text!r} is no https address (http only on this machine)")
    if not texts.get("client_id") or not texts.get("token_url"):
        raise UserError(f"{where}: client_id and token_url are needed")
    if "redirect_url" in texts and urlsplit(texts["redirect_url"]).hostname not in LOOPBACK:
        raise UserError(f"{where}.redirect_url: a login comes back to this machine only")
    style: Style = "openai" if body.get("style") == "openai" else "standard"
    scopes, params = body.get("scopes", ()), body.get("params", {})
    return Issuer(
        **texts,
        scopes=tuple(map(str, scopes)),
        params={str(name): str(value) for name, value in params.items()},
        style=style,
        json=bool(body.get("json", False)),
    )


_TEXTS: Final = (
    "client_id", "token_url", "authorize_url", "device_url", "device_token_url", "device_redirect_url", "verify_url",
    "redirect_url",
)  # fmt: skip


def safe(url: str) -> bool:
    """Whether a secret may go there: https, or this machine."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    if parts.username or not parts.hostname:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in LOOPBACK)


# ---- a browser


@frozen
class Ticket:
    """What one login in a browser is told by: `state` and `verifier` are random, 43 to 128 characters."""

    state: str
    verifier: str
    redirect_url: str


def challenge(verifier: str) -> str:
    """The S256 challenge of a verifier."""
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()


def address(issuer: Issuer, ticket: Ticket) -> str:
    """What a person opens in a browser."""
    query = {
        "response_type": "code",
        "client_id": issuer.client_id,
        "redirect_uri": ticket.redirect_url,
        "scope": " ".join(issuer.scopes),
        "code_challenge": challenge(ticket.verifier),
        "code_challenge_method": "S256",
        "state": ticket.state,
        **issuer.params,
    }
    glue = "&" if "?" in issuer.authorize_url else "?"
    return f"{issuer.authorize_url}{glue}{urlencode({name: text for name, text in query.items() if text})}"


def code(query: str, ticket: Ticket) -> str:
    """The code in the query of an address that a browser came back to. Raises Forbidden: another login's; UserError:
    refused.
    """
    found = {name: values[0] for name, values in parse_qs(query).items()}
    if not hmac.compare_digest(found.get("state", "").encode(), ticket.state.encode()):
        raise Forbidden("that answer belongs to another login: its state is not the one that was sent")
    if "error" in found:
        raise UserError(_refusal(found["error"], found.get("error_description")))
    if not found.get("code"):
        raise Forbidden("that answer has no code in it")
    return found["code"]


def pasted(text: str, ticket: Ticket) -> str:
    """The code in what a person pasted: the whole address, its query, `CODE#STATE`, or the code alone, which nobody
    but the asker can use. Raises Forbidden: it is no answer to this login; UserError: refused.
    """
    text = text.strip().strip("'\"")
    if "code=" in text or "error=" in text:
        parts = urlsplit(text) if "://" in text else None
        return code(parts.query or parts.fragment if parts else text.lstrip("?"), ticket)
    if "#" in text:
        bare, _, state = text.partition("#")
        return code(urlencode({"code": bare, "state": state}), ticket)
    if not text or "://" in text or any(character.isspace() for character in text):
        raise Forbidden("that is no answer of a login: paste the whole address that the browser ended at")
    return text


def code_form(issuer: Issuer, code: str, ticket: Ticket) -> dict[str, str]:
    """What is sent for tokens with the code of a login."""
    return {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": ticket.redirect_url,
        "client_id": issuer.client_id,
        "code_verifier": ticket.verifier,
    }


def refresh_form(issuer: Issuer, refresh: str) -> dict[str, str]:
    """What is sent to renew a login."""
    form = {"grant_type": "refresh_token", "refresh_token": refresh, "client_id": issuer.client_id}
    return form | ({"scope": " ".join(issuer.scopes)} if issuer.scopes else {})


# ---- what an issuer answers


@frozen
class Tokens:
    """A login as it was given. `expires_ms` None: the issuer did not say. `account` and `email` name whose it is."""

    access: Secret
    refresh: Secret
    expires_ms: int | None = None
    account: str = ""
    email: str = ""


Why = Literal["pending", "slow", "denied", "expired", "grant", "refused", "passing"]


@frozen
class Refused:
    """No tokens. `grant`: what was shown is spent or revoked, a new login is needed; `passing`: later, perhaps."""

    why: Why
    words: str


_WHY: Final[Mapping[str, Why]] = {
    "authorization_pending": "pending",
    "slow_down": "slow",
    "access_denied": "denied",
    "authorization_declined": "denied",
    "expired_token": "expired",
    "invalid_grant": "grant",
    "refresh_token_reused": "grant",
    "refresh_token_expired": "grant",
    "refresh_token_invalidated": "grant",
    "temporarily_unavailable": "passing",
    "server_error": "passing",
}


def tokens(status: int, body: bytes, now_ms: int) -> Tokens | Refused:
    """What an answer of the token address means."""
    told = object_of(body)
    if status != 200 or "error" in told:
        return refused(status, told)
    access = told.get("access_token")
    if not isinstance(access, str) or not access.strip():
        return Refused("refused", "the issuer answered without a token")
    claimed = claims(access) | claims(str(told.get("id_token") or ""))
    refresh, email = told.get("refresh_token"), claimed.get("email")
    return Tokens(
        Secret(access.strip()),
        Secret(refresh.strip() if isinstance(refresh, str) else ""),
        _expires(told.get("expires_in"), claims(access).get("exp"), now_ms),
        _account(claimed),
        email if isinstance(email, str) else "",
    )


def refused(status: int, told: Mapping[str, Any]) -> Refused:
    """What an answer without tokens means."""
    error = told.get("error")
    inner = error if isinstance(error, Mapping) else {}
    name = str(inner.get("code") or inner.get("type") or "") if inner else str(error or "")
    said = told.get("error_description") or inner.get("message")
    words = _refusal(name or f"HTTP {status}", said)
    if name in _WHY:
        return Refused(_WHY[name], words)
    return Refused("passing" if status in {408, 429} or status >= 500 else "refused", words)


def _refusal(name: str, said: object) -> str:
    """One line of what an issuer says, without what could move a terminal."""
    text = f"{name}: {said}" if isinstance(said, str) and said else name
    line = " ".join("".join(each if each.isprintable() else " " for each in text).split())
    return f"the issuer refused: {line[:LONGEST]}"


def _expires(span: object, exp: object, now_ms: int) -> int | None:
    seconds = float(span) if isinstance(span, str) and span.isdecimal() else span
    if isinstance(seconds, int | float) and not isinstance(seconds, bool) and 0 < seconds < 1e10:
        return now_ms + int(seconds * 1_000)
    return int(exp) * 1_000 if isinstance(exp, int) and 0 < exp < 1e10 else None


def claims(token: str) -> dict[str, Any]:
    """What a JWT says of itself; nothing for another token. It is not verified: it names things, it proves none."""
    parts = token.split(".")
    if len(parts) != 3:
        return {}
    try:
        return object_of(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (binascii.Error, ValueError):
        return {}


def _account(claimed: Mapping[str, Any]) -> str:
    own = claimed.get("https://api.openai.com/auth")
    found = own.get("chatgpt_account_id") if isinstance(own, Mapping) else None
    return str(found or claimed.get("sub") or "")


def object_of(body: bytes) -> dict[str, Any]:
    """An answer's JSON object; empty where it is none."""
    try:
        found = json.loads(body)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
