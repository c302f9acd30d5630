"""Discord's REST: JSON over HTTPS, its rate limits kept before they are hit."""

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
from garra.sdk.ports import DIRECT, Body, Clock, Http, Via

AGENT = "DiscordBot (garra, 1.0)"
_ANSWER = 16 << 20
_WAIT_S = 10.0
"""How long a call waits for its turn; a longer wait is told to the host instead."""
_BUCKETS = 1000


class Refused(GarraError):
    """Discord's no, or none at all. `status` is HTTP's, 0 where no answer came: then `kind` says why (`connect`: surely
    not sent; `timeout`, `cut`: perhaps). `number` is Discord's own error code, `form` what it says of single fields.
    """

    def __init__(self, what: str, said: str, status: int = 0, **more: Any) -> None:
        super().__init__(f"Discord {what}: {said}")
        self.said = said
        self.status = status
        self.kind: str = more.get("kind", "")
        self.number: int = more.get("number", 0)
        self.form: str = more.get("form", "")
        self.retry_after_s: float | None = more.get("retry_after_s")


@frozen
class Upload:
    """A file in a request: its name, its type, its bytes."""

    name: str
    mime: str
    data: bytes


class Api:
    """The REST of one bot."""

    def __init__(self, http: Http, clock: Clock, token: Secret, *, root: str, via: Via = DIRECT) -> None:
        self._http, self._clock, self._token, self._via = http, clock, token, via
        self.root = root
        self._limits: dict[str, tuple[str, float]] = {}
        self._left: dict[str, tuple[int, float]] = {}
        self._all_until = 0.0

    async def call(
        self, method: str, path: str, body: Any = None, *, files: Sequence[Upload] = (), wait: float = 30.0
    ) -> Any:
        """The answer's JSON, None where there is none. `wait` seconds bound the silence before it. Raises Refused."""
        route = _route(method, path)
        await self._turn(route, path)
        headers = {"authorization": f"Bot {self._token.reveal()}", "user-agent": AGENT}
        data = None
        if files:
            headers["content-type"], data = await asyncio.to_thread(form, body, files)
        elif body is not None:
            headers["content-type"], data = "application/json", encoded(body)
        elif method != "GET":
            data = b""
        try:
            async with self._http.stream(
                method, self.root + path, headers=headers, body=data, timeout=wait, via=self._via
            ) as answer:
                self._learn(route, answer.headers)
                return self._read(f"{method} {_shown(path)}", answer.status, await answer.read(_ANSWER), answer.headers)
        except Unavailable as fault:
            raise self._lost(f"{method} {_shown(path)}", fault) from None

    def download(self, url: str, limit: int) -> AsyncIterator[bytes]:
        """The bytes of an attachment: no credential goes with it. Raises Refused, SendFailed `too_large`."""
        return fetched(
            self._http, url, limit, refused=_no_file, lost=lambda fault: self._lost("file", fault), via=self._via
        )

    # ---- rate limits

    async def _turn(self, route: str, path: str) -> None:
        """Wait until Discord takes this call. Raises Refused (429) where that is long."""
        now = self._clock.monotonic()
        left, at = self._left.get(self._limits.get(route, (route, 0.0))[0], (1, 0.0))
        until = max(self._all_until, at if left <= 0 else 0.0)
        if until <= now:
            return
        if until - now > _WAIT_S:
            raise Refused(_shown(path), "asks for a pause", 429, retry_after_s=until - now)
        await self._clock.sleep(until - now)

    def _learn(self, route: str, headers: Mapping[str, str]) -> None:
        """How many calls are left, in the bucket this route turned out to share."""
        name, left, after = (headers.get(f"x-ratelimit-{key}") for key in ("bucket", "remaining", "reset-after"))
        if name is None or left is None or after is None or not left.isdecimal():
            return
        now = self._clock.monotonic()
        bucket = f"{name}:{route.partition(' ')[2].partition(':')[0]}"
        self._limits[route] = (bucket, now)
        self._left[bucket] = (int(left), now + seconds(after))
        for kept in (self._limits, self._left):
            while len(kept) > _BUCKETS:
                kept.pop(next(iter(kept)))

    def _read(self, what: str, status: int, body: bytes, headers: Mapping[str, str]) -> Any:
        found = parsed(body)
        if 200 <= status < 300:
            return found
        told = found if isinstance(found, dict) else {}
        wait = told.get("retry_after", headers.get("retry-after"))
        after = seconds(wait) if wait is not None and status == 429 else None
        if after is not None and (told.get("global") or headers.get("x-ratelimit-global")):
            self._all_until = self._clock.monotonic() + after
        code = told.get("code")
        raise Refused(
            what,
            str(told.get("message") or f"answered {status}")[:300],
            status,
            number=code if isinstance(code, int) else 0,
            form=encoded(told["errors"]).decode()[:2000] if "errors" in told else "",
            retry_after_s=after,
        )

    def _lost(self, what: str, fault: Unavailable) -> Refused:
        words = fault.message.replace(self._token.reveal(), "***") if self._token else fault.message
        return Refused(what, words, kind=str((fault.details or {}).get("kind", "cut")))


def _no_file(answer: Body) -> Refused | None:
    return None if answer.status == 200 else Refused("file", f"answered {answer.status}", answer.status)


def seconds(value: Any, scale: float = 1.0) -> float:
    """A time as Discord writes it, in `scale` seconds; what is none is a second. At most a day."""
    try:
        found = float(value) * scale
    except (TypeError, ValueError):
        return 1.0
    return min(max(found, 0.0), 86_400.0)


def _route(method: str, path: str) -> str:
    """What shares a limit until Discord says more: the call with its channel or server, other ids left out."""
    parts = path.partition("?")[0].strip("/").split("/")
    major = parts[1] if parts[0] in {"channels", "guilds", "webhooks"} and len(parts) > 1 else ""
    shape = "/".join("*" if part.isdecimal() or "%" in part else part for part in parts)
    return f"{method} {major}:{shape}"


def _shown(path: str) -> str:
    """A path for people: an interaction's token stays out of it."""
    parts = path.partition("?")[0].split("/")
    return "/".join("…" if len(part) > 40 else part for part in parts)


def form(body: Any, files: Sequence[Upload]) -> tuple[str, bytes]:
    """A multipart body and its type. What parts the parts is made from them, so that no file can hold it."""
    head = b'content-disposition: form-data; name="payload_json"\r\ncontent-type: application/json\r\n\r\n'
    parts = [head + encoded(body)]
    for at, file in enumerate(files):
        about = f'content-disposition: form-data; name="files[{at}]"; filename="{_quoted(file.name)}"\r\n'
        about += f"content-type: {_flat(file.mime)}\r\n\r\n"
        parts.append(about.encode("utf-8", "replace") + file.data)
    summed = sha256()
    for part in parts:
        summed.update(part)
    mark = summed.hexdigest()[:48].encode()
    whole = b"".join([*(b"--%b\r\n%b\r\n" % (mark, part) for part in parts), b"--%b--\r\n" % mark])
    return f"multipart/form-data; boundary={mark.decode()}", whole


def _flat(text: str) -> str:
    return " ".join(text.split()) or "application/octet-stream"


def _quoted(name: str) -> str:
    return _flat(name).replace("\\", "_").replace('"', "_").replace("/", "_")
