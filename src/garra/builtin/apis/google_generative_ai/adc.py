"""Google Cloud's application default credentials: a token for the login that is found on this machine.

Looked for are the file that `GOOGLE_APPLICATION_CREDENTIALS` names, the one that `gcloud auth application-default
login` writes, and the server that a machine of Google's own can ask.
"""

from __future__ import annotations

import asyncio
import base64
import importlib
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode

import msgspec

from garra.core import failures
from garra.core.errors import Failure, FailureKind, RunFailed, Unavailable
from garra.core.value import frozen
from garra.sdk.cloud import Cloud
from garra.sdk.ports import Clock, Http, Via

SCOPE: Final = "https://www.googleapis.com/auth/cloud-platform"
TOKEN_URL: Final = "https://oauth2.googleapis.com/token"
METADATA: Final = "http://metadata.google.internal/computeMetadata/v1/"
WELL_KNOWN: Final = "~/.config/gcloud/application_default_credentials.json"
_EARLY_MS: Final = 120_000
"""So long before its end a token is not used any more."""


@frozen
class _Token:
    secret: str
    project: str
    until_ms: int


class Tokens:
    """The machine's token, renewed before it ends; who waits for it meanwhile gets the same."""

    def __init__(self, http: Http, clock: Clock, cloud: Cloud) -> None:
        self._http, self._clock, self._cloud = http, clock, cloud
        self._lock = asyncio.Lock()
        self._token: _Token | None = None

    async def now(self, via: Via) -> tuple[str, str]:
        """A token, and the project that its login belongs to, where that is known. Raises RunFailed."""
        async with self._lock:
            if self._token is None or self._token.until_ms < self._clock.now_ms() + _EARLY_MS:
                self._token = await self._fresh(via)
            return self._token.secret, self._token.project

    async def _fresh(self, via: Via) -> _Token:
        path = self._cloud.setting("GOOGLE_APPLICATION_CREDENTIALS") or WELL_KNOWN
        data = await self._cloud.file(path)
        if data is None:
            if path != WELL_KNOWN:
                raise _unusable(f"GOOGLE_APPLICATION_CREDENTIALS names {path}, which cannot be read")
            return await self._machine(via)
        try:
            login = msgspec.json.decode(data)
        except msgspec.DecodeError:
            raise _unusable(f"{path} is no JSON") from None
        match login.get("type") if isinstance(login, Mapping) else None:
            case "service_account":
                form = await asyncio.to_thread(assertion, login, self._clock.now_ms() // 1_000)
            case "authorized_user":
                form = {name: str(login.get(name, "")) for name in ("client_id", "client_secret", "refresh_token")}
                form["grant_type"] = "refresh_token"
            case other:
                raise _unusable(
                    f"{path} is a login of the kind {other!r}; service_account or authorized_user is needed"
                )
        try:
            told = await self._ask("POST", str(login.get("token_uri") or TOKEN_URL), via, form)
        except Unavailable as gone:
            raise RunFailed(failures.gone(gone)) from None
        return self._token_of(told, str(login.get("project_id") or login.get("quota_project_id") or ""))

    async def _machine(self, via: Via) -> _Token:
        """Of a machine in Google's cloud."""
        try:
            told = await self._ask("GET", METADATA + "instance/service-accounts/default/token", via)
            project = await self._text(METADATA + "project/project-id", via)
        except Unavailable:
            line = "run `gcloud auth application-default login`, or set GOOGLE_APPLICATION_CREDENTIALS"
            raise _unusable(f"no login of Google Cloud is on this machine: {line}") from None
        return self._token_of(told, project)

    def _token_of(self, told: Mapping[str, Any], project: str) -> _Token:
        seconds = told.get("expires_in")
        life = int(seconds) if isinstance(seconds, int | float) else 300
        if not told.get("access_token"):
            raise _unusable("Google gave no token")
        return _Token(str(told["access_token"]), project, self._clock.now_ms() + life * 1_000)

    async def _ask(self, method: str, url: str, via: Via, form: Mapping[str, str] | None = None) -> Mapping[str, Any]:
        headers = (
            {"metadata-flavor": "Google"} if form is None else {"content-type": "application/x-www-form-urlencoded"}
        )
        body = urlencode(form).encode() if form is not None else None
        connect = 10.0 if form is not None else 2.0
        async with self._http.stream(method, url, headers=headers, body=body, connect=connect, via=via) as answer:
            said = await answer.read()
            if answer.status >= 300:
                failure = failures.refused(answer.status, said.decode("utf-8", "replace"), answer.headers)
                kind = FailureKind.AUTH if answer.status in (400, 401, 403) else failure.kind
                raise RunFailed(Failure(kind, f"Google Cloud gave no token: {failure.message}", status=answer.status))
        try:
            told = msgspec.json.decode(said)
        except msgspec.DecodeError:
            told = None
        return told if isinstance(told, Mapping) else {}

    async def _text(self, url: str, via: Via) -> str:
        async with self._http.stream("GET", url, headers={"metadata-flavor": "Google"}, via=via) as answer:
            return (await answer.read()).decode("utf-8", "replace").strip() if answer.status < 300 else ""


def assertion(login: Mapping[str, Any], now_s: int) -> dict[str, str]:
    """The form by which a service account asks for a token: its claim, signed with its key. Raises RunFailed."""
    serialization = importlib.import_module("cryptography.hazmat.primitives.serialization")
    hashes = importlib.import_module("cryptography.hazmat.primitives.hashes")
    padding = importlib.import_module("cryptography.hazmat.primitives.asymmetric.padding")
    claim = {
        "iss": login.get("client_email"),
        "scope": SCOPE,
        "aud": login.get("token_uri") or TOKEN_URL,
        "iat": now_s,
        "exp": now_s + 3_600,
    }
    head = {"alg": "RS256", "typ": "JWT", "kid": login.get("private_key_id")}
    signed = b".".join(_encoded(msgspec.json.encode(part)) for part in (head, claim))
    try:
        key = serialization.load_pem_private_key(str(login.get("private_key", "")).encode(), None)
        signature = key.sign(signed, padding.PKCS1v15(), hashes.SHA256())
    except (ValueError, TypeError):
        raise _unusable("the private key of the service account cannot be read") from None
    token = b".".join((signed, _encoded(signature))).decode()
    return {"grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer", "assertion": token}


def _encoded(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def _unusable(line: str) -> RunFailed:
    return RunFailed(Failure(FailureKind.NO_KEY, line))
