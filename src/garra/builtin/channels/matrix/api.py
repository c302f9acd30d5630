"""The client-server API: JSON over HTTPS, through the host's door, without a retry of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any
from urllib.parse import quote, urlencode

from garra.core.errors import GarraError, Unavailable
from garra.core.secret import Secret
from garra.sdk.encoding import encoded, parsed
from garra.sdk.fetching import bounded
from garra.sdk.ports import DIRECT, Http, Via

V3 = "/_matrix/client/v3"
_ANSWER = 128 << 20


class Refused(GarraError):
    """The server's no, or none at all. `status` is of HTTP, 0 where no answer came: then `kind` says why (`connect`:
    surely not sent; `timeout`, `cut`: perhaps). `errcode` is Matrix's, `soft`: the login may be renewed. `session` is
    that of a call that wants to be proved by a password.
    """

    def __init__(self, what: str, said: str, status: int = 0, **more: Any) -> None:
        super().__init__(f"Matrix {what}: {said}")
        self.said = said
        self.status = status
        self.kind: str = more.get("kind", "")
        self.errcode: str = more.get("errcode", "")
        self.retry_after_s: float | None = more.get("retry_after_s")
        self.soft: bool = bool(more.get("soft"))
        self.session: str = more.get("session", "")


class Api:
    """One login on one homeserver. `token` is set when it is known."""

    def __init__(self, http: Http, root: str, via: Via = DIRECT) -> None:
        self._http, self._root, self._via = http, root, via
        self.token = Secret("")

    async def call(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        query: Mapping[str, Any] | None = None,
        *,
        wait: float = 30.0,
    ) -> dict[str, Any]:
        """The answer's object; `wait` seconds bound the silence before it. Raises Refused."""
        data = None if method == "GET" else encoded(body or {})
        address = (path if path.startswith("/_matrix/") else V3 + path) + (f"?{urlencode(query)}" if query else "")
        return result(path, *await self._ask(method, address, data, "application/json", wait=wait))

    async def upload(self, data: bytes, name: str, mime: str) -> str:
        """Store bytes on the server; gives their mxc address. Raises Refused."""
        address = f"/_matrix/media/v3/upload?{urlencode({'filename': name})}"
        found = result(
            "upload", *await self._ask("POST", address, data, mime or "application/octet-stream", wait=120.0)
        )
        return str(found.get("content_uri") or "")

    async def download(self, mxc: str, limit: int) -> AsyncIterator[bytes]:
        """The bytes behind an mxc address, at most `limit`. Raises Refused, SendFailed `too_large`."""
        place = "/".join(quote(part, safe="") for part in mxc.removeprefix("mxc://").split("/", 1))
        try:
            async for chunk in self._file(f"/_matrix/client/v1/media/download/{place}", limit):
                yield chunk
        except Refused as refused:
            if refused.errcode != "M_UNRECOGNIZED":
                raise
            # a server from before media asked for a login
            async for chunk in self._file(f"/_matrix/media/v3/download/{place}", limit):
                yield chunk

    async def _file(self, path: str, limit: int) -> AsyncIterator[bytes]:
        try:
            async with self._http.stream(
                "GET", self._root + path, headers=self._headers(), timeout=60.0, via=self._via
            ) as answer:
                if answer.status != 200:
                    result("file", answer.status, await answer.read(1 << 20))
                async for chunk in bounded(answer.chunks(), limit):
                    yield chunk
        except Unavailable as fault:
            raise self._lost("file", fault) from None

    async def _ask(
        self, method: str, address: str, data: bytes | None, mime: str, *, wait: float
    ) -> tuple[int, bytes, str]:
        headers = self._headers() | ({} if data is None else {"content-type": mime})
        try:
            async with self._http.stream(
                method, self._root + address, headers=headers, body=data, timeout=wait, via=self._via
            ) as answer:
                return answer.status, await answer.read(_ANSWER), answer.headers.get("retry-after", "")
        except Unavailable as fault:
            raise self._lost(address.partition("?")[0], fault) from None

    def _headers(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self.token.reveal()}"} if self.token else {}

    def _lost(self, what: str, fault: Unavailable) -> Refused:
        words = fault.message.replace(self.token.reveal(), "***") if self.token else fault.message
        return Refused(what.removeprefix(V3), words, kind=str((fault.details or {}).get("kind", "cut")))


def at(*parts: str) -> str:
    """A path of parts, each quoted whole: ids hold `!`, `:`, `#`, and may hold `/`."""
    return "".join(f"/{quote(part, safe='')}" for part in parts)


def result(what: str, status: int, body: bytes, after: str = "") -> dict[str, Any]:
    """The object in an answer; `after` is its `retry-after`. Raises Refused with the server's own words."""
    found = parsed(body)
    if not isinstance(found, dict):
        raise Refused(what, f"answered {status} without a JSON object", status if status >= 400 else 502)
    if status == 200:
        return found
    wait = found.get("retry_after_ms")
    asked = float(after) if after.isdecimal() else None
    raise Refused(
        what,
        f"{found.get('errcode') or status}: {str(found.get('error') or 'no words')[:300]}",
        status,
        errcode=str(found.get("errcode") or ""),
        retry_after_s=wait / 1000 if isinstance(wait, int | float) else asked,
        soft=found.get("soft_logout") is True,
        session=str(found.get("session") or ""),
    )
