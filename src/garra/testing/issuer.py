"""An issuer of logins that lives on this machine: OAuth over real sockets, for tests.

It has an authorization address, a token address, a device address and, in OpenAI's form, the two that its accounts
have. Refresh tokens are good once; `uses` counts what came to each address.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from garra.core.oauth import challenge


@dataclass
class Issuer:
    """`async with Issuer() as issuer:` gives a running one. `grants` are the answers that a device gets, in order
    (`pending`, `slow_down`, `denied`, `expired`, `lost`, `ok`); after them, `ok`. `delay_s` is how long a renewal
    takes. `deny` has the person say no. `broken` answers that many renewals with HTTP 503.
    """

    expires_in: int = 3_600
    delay_s: float = 0.0
    interval: int = 1
    deny: bool = False
    broken: int = 0
    mute: bool = False
    grants: list[str] = field(default_factory=list)
    uses: Counter[str] = field(default_factory=Counter)
    forms: list[dict[str, str]] = field(default_factory=list)
    access: set[str] = field(default_factory=set)
    live: set[str] = field(default_factory=set)
    spent: set[str] = field(default_factory=set)
    url: str = ""
    renewing: asyncio.Event = field(default_factory=asyncio.Event)
    _codes: dict[str, dict[str, str]] = field(default_factory=dict)
    _made: int = 0

    async def __aenter__(self) -> Issuer:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        await self._server.wait_closed()

    def login(self, **more: Any) -> dict[str, Any]:
        """A provider's way to log in here, as its file would have it."""
        return {
            "id": "oauth",
            "kind": "oauth",
            "client_id": "client",
            "authorize_url": f"{self.url}/authorize",
            "token_url": f"{self.url}/token",
            "device_url": f"{self.url}/device",
            "scopes": ["openid", "offline_access"],
            "redirect_url": "http://127.0.0.1:0/auth/callback",
            **more,
        }

    def openai(self) -> dict[str, Any]:
        """The same in the form of OpenAI's accounts."""
        return self.login(
            style="openai",
            device_url=f"{self.url}/api/accounts/deviceauth/usercode",
            device_token_url=f"{self.url}/api/accounts/deviceauth/token",
            device_redirect_url=f"{self.url}/deviceauth/callback",
            verify_url=f"{self.url}/codex/device",
        )

    def given(self) -> str:
        """A refresh token that is good, as if somebody had logged in."""
        return str(self._pair()["refresh_token"])

    def allowed(self, url: str) -> str:
        """The code that a person's browser is sent back with who opens `url` and says yes."""
        code = f"code-{len(self._codes)}"
        self._codes[code] = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
        return code

    def _pair(self) -> dict[str, Any]:
        self._made += 1
        refresh = f"refresh-{self._made}"
        claimed = {
            "sub": "user-1",
            "email": "a@example.org",
            "https://api.openai.com/auth": {"chatgpt_account_id": "acc"},
        }
        access = (
            f"h.{base64.urlsafe_b64encode(json.dumps({**claimed, 'n': self._made}).encode()).decode().rstrip('=')}.s"
        )
        self.live.add(refresh)
        self.access.add(access)
        return {"access_token": access, "refresh_token": refresh, "expires_in": self.expires_in, "token_type": "Bearer"}

    # ---- the wire

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            first, *lines = head.rstrip().split("\r\n")
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
            raw = await reader.readexactly(int(headers.get("content-length", "0")))
            _, target, _ = first.split(" ", 2)
            form = _form(raw, headers.get("content-type", ""), urlsplit(target).query)
            status, more, body = await self._answer(urlsplit(target).path, form)
            if status:
                told = {"content-type": "application/json", "content-length": str(len(body)), "connection": "close"}
                said = "".join(f"{name}: {value}\r\n" for name, value in (told | more).items())
                writer.write(f"HTTP/1.1 {status} x\r\n{said}\r\n".encode() + body)
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass  # the caller gave up
        finally:
            writer.close()

    async def _answer(self, path: str, form: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
        """Status, headers, body; status 0 breaks the connection."""
        self.uses[form.get("grant_type", path)] += 1
        self.forms.append(form)
        match path:
            case "/authorize":
                return self._authorize(form)
            case "/token" if form.get("grant_type") == "refresh_token":
                return await self._refresh(form)
            case "/token" if "device_code" in form:
                return self._device_poll()
            case "/token":
                return self._exchange(form)
            case "/device":
                return _json(200, {"device_code": "dev", "user_code": "AB-CD", "verification_uri": f"{self.url}/enter",
                                   "verification_uri_complete": f"{self.url}/enter?code=AB-CD",
                                   "interval": self.interval, "expires_in": 600})  # fmt: skip
            case "/api/accounts/deviceauth/usercode":
                return _json(200, {"device_auth_id": "dev", "user_code": "AB-CD", "interval": str(self.interval)})
            case "/api/accounts/deviceauth/token":
                return self._openai_poll()
        return _json(404, {"error": "not_found"})

    def _authorize(self, form: Mapping[str, str]) -> tuple[int, dict[str, str], bytes]:
        """The person's browser, which goes straight back."""
        back = {"state": form.get("state", "")}
        if self.deny:
            back |= {"error": "access_denied", "error_description": "the person said no"}
        else:
            back["code"] = self.allowed(f"?{urlencode(form)}")
        return 302, {"location": f"{form['redirect_uri']}?{urlencode(back)}"}, b""

    def _exchange(self, form: Mapping[str, str]) -> tuple[int, dict[str, str], bytes]:
        asked = self._codes.pop(form.get("code", ""), None)
        if asked is None:
            return _json(400, {"error": "invalid_grant", "error_description": "this code is spent or was never given"})
        if asked["redirect_uri"] != form.get("redirect_uri"):
            return _json(400, {"error": "invalid_grant", "error_description": "another redirect address"})
        if asked["code_challenge"] != challenge(form.get("code_verifier", "")):
            return _json(400, {"error": "invalid_grant", "error_description": "the verifier does not fit"})
        return _json(200, self._pair())

    async def _refresh(self, form: Mapping[str, str]) -> tuple[int, dict[str, str], bytes]:
        self.renewing.set()
        token = form.get("refresh_token", "")
        if self.broken:
            self.broken -= 1
            return _json(503, {"error": "temporarily_unavailable"})
        good = token in self.live
        if good:
            self.live.discard(token)
            self.spent.add(token)
        await asyncio.sleep(self.delay_s)
        if self.mute:
            return 0, {}, b""
        if not good:
            return _json(
                400,
                {
                    "error": "invalid_grant",
                    "error_description": f"refresh token {'reused' if token in self.spent else 'unknown'}",
                },
            )
        return _json(200, self._pair())

    def _next(self) -> str:
        return self.grants.pop(0) if self.grants else "ok"

    def _device_poll(self) -> tuple[int, dict[str, str], bytes]:
        match self._next():
            case "ok":
                return _json(200, self._pair())
            case "lost":
                return 0, {}, b""
            case "pending":
                return _json(400, {"error": "authorization_pending"})
            case "denied":
                return _json(400, {"error": "access_denied"})
            case "expired":
                return _json(400, {"error": "expired_token"})
            case other:
                return _json(400, {"error": other})

    def _openai_poll(self) -> tuple[int, dict[str, str], bytes]:
        if (now := self._next()) != "ok":
            return _json(403 if now == "pending" else 400, {"error": now})
        self._codes["granted"] = {
            "redirect_uri": f"{self.url}/deviceauth/callback", "code_challenge": challenge("verifier"),
        }  # fmt: skip
        return _json(200, {"authorization_code": "granted", "code_verifier": "verifier"})


def _form(raw: bytes, kind: str, query: str) -> dict[str, str]:
    if "json" in kind and raw:
        return {str(name): str(value) for name, value in json.loads(raw).items()}
    return {name: values[0] for name, values in parse_qs(raw.decode() or query).items()}


def _json(status: int, body: Mapping[str, Any]) -> tuple[int, dict[str, str], bytes]:
    return status, {}, json.dumps(body).encode()
