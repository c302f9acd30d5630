"""The Bot API: JSON over HTTPS, one address a method. Small enough to own, so that its requests use the host's door."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from hashlib import sha256
from typing import Any

from garra.core.errors import GarraError, Unavailable
from garra.core.secret import Secret
from garra.core.value import frozen
from garra.sdk.encoding import encoded, parsed
from garra.sdk.fetching import fetched
from garra.sdk.ports import DIRECT, Body, Http, Via

ROOT = "https://api.telegram.org"
_ANSWER = 32 << 20


class Refused(GarraError):
    """Telegram's no, or none at all. `status` is its error code, 0 where no answer came: then `kind` says why
    (`connect`: surely not sent; `timeout`, `cut`: perhaps). `migrated` is the chat's new id.
    """

    def __init__(self, method: str, said: str, status: int = 0, **more: Any) -> None:
        super().__init__(f"Telegram {method}: {said}")
        self.said = said
        self.status = status
        self.kind: str = more.get("kind", "")
        self.retry_after_s: float | None = more.get("retry_after_s")
        self.migrated: int | None = more.get("migrated")


@frozen
class Upload:
    """A file in a request: the field it stands in, its name, its type, its bytes."""

    field: str
    name: str
    mime: str
    data: bytes


class Api:
    """The methods of one bot."""

    def __init__(self, http: Http, token: Secret, root: str = ROOT, via: Via = DIRECT) -> None:
        self._http, self._token, self._via = http, token, via
        self.root = clean_root(root)

    async def call(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        files: Sequence[Upload] = (),
        wait: float = 30.0,
    ) -> Any:
        """The result of a method; `wait` seconds bound the silence before the answer. Raises Refused."""
        kind, body = "application/json", b""
        if files:
            kind, body = await asyncio.to_thread(form, params or {}, files)  # up to 50 MB are joined and summed
        else:
            body = encoded(params or {})
        url = f"{self.root}/bot{self._token.reveal()}/{method}"
        try:
            async with self._http.stream(
                "POST", url, headers={"content-type": kind}, body=body, timeout=wait, via=self._via
            ) as answer:
                return result(method, answer.status, await answer.read(_ANSWER))
        except Unavailable as fault:
            raise self._lost(method, fault) from None
        except Refused as refused:
            refused.said, refused.message = self._hidden(refused.said), self._hidden(refused.message)
            raise

    def download(self, file_path: str, limit: int) -> AsyncIterator[bytes]:
        """The bytes of a file, as getFile told its path. Raises Refused, SendFailed `too_large`."""
        url = f"{self.root}/file/bot{self._token.reveal()}/{file_path}"
        return fetched(
            self._http, url, limit, refused=_no_file, lost=lambda fault: self._lost("file", fault), via=self._via
        )

    def _lost(self, method: str, fault: Unavailable) -> Refused:
        """The door's fault; the address, and so the token, may stand in its words."""
        return Refused(method, self._hidden(fault.message), kind=str((fault.details or {}).get("kind", "cut")))

    def _hidden(self, words: str) -> str:
        """A server's words; it may repeat the address it was asked at."""
        return words.replace(self._token.reveal(), "***")


def clean_root(root: str) -> str:
    """The server's address without what people paste behind it (`/bot<TOKEN>`, a slash)."""
    head, mark, tail = root.strip().rstrip("/").partition("/bot")
    return head.rstrip("/") if mark and "/" not in tail and ":" in tail else (head + mark + tail)


def result(method: str, status: int, body: bytes) -> Any:
    """The result in an answer. Raises Refused with Telegram's own words."""
    found = parsed(body)
    if not isinstance(found, dict):
        raise Refused(method, f"answered {status} without JSON", status if status >= 400 else 502)
    if found.get("ok"):
        return found.get("result")
    more = found.get("parameters") or {}
    raise Refused(
        method,
        str(found.get("description") or f"error {status}")[:300],
        int(found.get("error_code") or status),
        retry_after_s=more.get("retry_after"),
        migrated=more.get("migrate_to_chat_id"),
    )


def _no_file(answer: Body) -> Refused | None:
    return None if answer.status == 200 else Refused("file", f"answered {answer.status}", answer.status)


def form(params: Mapping[str, Any], files: Sequence[Upload]) -> tuple[str, bytes]:
    """A multipart body and its type; values that are no text are JSON."""
    parts = []
    for name, value in params.items():
        text = value.encode("utf-8", "replace") if isinstance(value, str) else encoded(value)
        parts.append(f'content-disposition: form-data; name="{name}"\r\n\r\n'.encode() + text)
    for file in files:
        head = f'form-data; name="{file.field}"; filename="{_quoted(file.name)}"\r\ncontent-type: {_flat(file.mime)}'
        parts.append(b"content-disposition: %b\r\n\r\n" % head.encode("utf-8", "replace") + file.data)
    mark = _mark(parts)
    body = b"".join([*(b"--%b\r\n%b\r\n" % (mark, part) for part in parts), b"--%b--\r\n" % mark])
    return f"multipart/form-data; boundary={mark.decode()}", body


def _mark(parts: Sequence[bytes]) -> bytes:
    """What parts the parts: made from them, so that no file can hold it and pass for a field."""
    summed = sha256()
    for part in parts:
        summed.update(part)
    return summed.hexdigest()[:48].encode()


def _flat(text: str) -> str:
    return " ".join(text.split()) or "application/octet-stream"


def _quoted(name: str) -> str:
    return _flat(name).replace("\\", "_").replace('"', "_").replace("/", "_")
