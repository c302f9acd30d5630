"""Slack's Web API: forms over HTTPS, one address a method."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any
from urllib.parse import quote_from_bytes, quote_plus, urlsplit

from garra.core.errors import GarraError, Unavailable
from garra.core.secret import Secret
from garra.sdk.encoding import encoded, parsed
from garra.sdk.fetching import fetched
from garra.sdk.ports import DIRECT, Body, Http, Via

_ANSWER = 16 << 20
_LATER_S = 30.0


class Refused(GarraError):
    """Slack's no, or none at all. `word` is its error (`channel_not_found`), empty where no answer came: then `kind`
    says why (`connect`: surely not done; `timeout`, `cut`: perhaps). `status` is HTTP's.
    """

    def __init__(self, method: str, said: str, **more: Any) -> None:
        super().__init__(f"Slack {method}: {said}")
        self.word: str = more.get("word", "")
        self.status: int = more.get("status", 0)
        self.kind: str = more.get("kind", "")
        self.retry_after_s: float | None = more.get("retry_after_s")


class Api:
    """The methods of one app in one workspace."""

    def __init__(self, http: Http, bot: Secret, app: Secret, *, root: str, via: Via = DIRECT) -> None:
        self._http, self._bot, self._app, self._via = http, bot, app, via
        self.root = root

    async def call(self, method: str, params: Mapping[str, Any] | None = None, *, wait: float = 30.0) -> dict[str, Any]:
        """The answer of a method. Raises Refused."""
        token = self._app if method == "apps.connections.open" else self._bot
        headers = {
            "authorization": f"Bearer {token.reveal()}",
            "content-type": "application/x-www-form-urlencoded; charset=utf-8",
        }
        try:
            async with self._http.stream(
                "POST", f"{self.root}/{method}", headers=headers, body=form(params or {}), timeout=wait, via=self._via
            ) as answer:
                return result(method, answer.status, await answer.read(_ANSWER), answer.headers)
        except Unavailable as fault:
            raise self._lost(method, fault) from None

    async def upload(self, url: str, data: bytes) -> None:
        """The bytes of a file to where Slack said: no credential goes with them. Raises Refused."""
        headers = {"content-type": "application/octet-stream"}
        try:
            async with self._http.stream(
                "POST", self.own(url), headers=headers, body=data, timeout=120.0, via=self._via
            ) as answer:
                if answer.status != 200:
                    raise Refused("upload", f"answered {answer.status}", status=answer.status)
                await answer.read(_ANSWER)
        except Unavailable as fault:
            raise self._lost("upload", fault) from None

    def download(self, url: str, limit: int) -> AsyncIterator[bytes]:
        """The bytes of a file, with the bot's credential, which only Slack's own hosts see.

        Raises Refused, SendFailed `too_large`.
        """
        headers = {"authorization": f"Bearer {self._bot.reveal()}"}

        def refused(answer: Body) -> Refused | None:
            if answer.status != 200:
                return Refused("file", f"answered {answer.status}", status=answer.status)
            if answer.headers.get("content-type", "").startswith("text/html") and not url.endswith(".html"):
                return Refused("file", "asks for a login instead: the app needs the scope files:read", status=403)
            return None

        return fetched(
            self._http,
            self.own(url),
            limit,
            refused=refused,
            lost=lambda fault: self._lost("file", fault),
            headers=headers,
            via=self._via,
        )

    def own(self, url: str) -> str:
        """An address, where it is Slack's. Raises Refused."""
        parts, root = urlsplit(url), urlsplit(self.root)
        host = parts.hostname or ""
        slack = parts.scheme == "https" and f".{host}".endswith((".slack.com", ".slack-edge.com", f".{root.hostname}"))
        if slack or (parts.scheme, parts.netloc) == (root.scheme, root.netloc):
            return url
        raise Refused("file", "it is not on Slack's own servers", word="foreign_host", status=400)

    def _lost(self, method: str, fault: Unavailable) -> Refused:
        words = fault.message
        for secret in (self._bot, self._app):
            words = words.replace(secret.reveal(), "***") if secret else words
        return Refused(method, words, kind=str((fault.details or {}).get("kind", "cut")))


def form(params: Mapping[str, Any]) -> bytes:
    """Parameters as a form; what is no text is JSON, None is left out."""
    return "&".join(
        f"{quote_plus(name)}={_written(value)}" for name, value in params.items() if value is not None
    ).encode()


def _written(value: Any) -> str:
    data = value.encode("utf-8", "replace") if isinstance(value, str) else encoded(value)
    return quote_from_bytes(data, safe="")


def result(method: str, status: int, body: bytes, headers: Mapping[str, str]) -> dict[str, Any]:
    """The answer in it. Raises Refused with Slack's own word."""
    found = parsed(body)
    if status == 429:
        raise Refused(method, "asks for a pause", word="ratelimited", status=429, retry_after_s=pause(headers))
    if not isinstance(found, dict):
        raise Refused(method, f"answered {status} without JSON", status=status if status >= 400 else 502)
    if found.get("ok") is True:
        return found
    word = str(found.get("error") or f"answered {status}")[:100]
    wants = f", which needs the scope {str(found['needed'])[:100]}" if found.get("needed") else ""
    after = pause(headers) if word in {"ratelimited", "rate_limited"} else None
    raise Refused(method, word + wants, word=word, status=status, retry_after_s=after)


def pause(headers: Mapping[str, str]) -> float:
    """The seconds Slack asks to wait."""
    told = headers.get("retry-after", "")
    return float(min(int(told), 86_400)) if told.isdecimal() else _LATER_S
