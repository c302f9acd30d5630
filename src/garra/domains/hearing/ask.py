"""One provider is asked for the words of a recording: the form of OpenAI's `/audio/transcriptions`."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, Protocol

from garra.core import failures, recordings
from garra.core.errors import Failure, FailureKind, GarraError, Unavailable
from garra.core.value import frozen
from garra.sdk.ports import Http, Via

LARGEST: Final = 4 << 20
"""Bytes of an answer that are read."""

_WORDS: Final[Mapping[FailureKind, str]] = {
    FailureKind.AUTH: "the key is refused",
    FailureKind.BILLING: "its account has no credit left",
    FailureKind.RATE_LIMIT: "too many requests",
    FailureKind.OVERLOADED: "it is overloaded",
    FailureKind.TIMEOUT: "it took too long",
    FailureKind.NETWORK: "it cannot be reached",
    FailureKind.CUT: "the connection broke",
    FailureKind.NOT_FOUND: "no such model or address there",
    FailureKind.OVERFLOW: "the recording is too large for it",
    FailureKind.FILTERED: "its content filter refused it",
    FailureKind.SERVER: "it has a fault",
}


class Fault(GarraError):
    """One did not hear it. `message` says why in a few words; `whole` is for the log. Neither holds a secret."""

    def __init__(self, message: str, whole: str = "") -> None:
        super().__init__(message)
        self.whole = whole or message


@frozen
class Recording:
    """A file that came in; `size` in bytes, `mime` and `name` as its sender says."""

    path: Path
    mime: str
    name: str
    size: int


class Listener(Protocol):
    """One provider for one call; see `domains.models.audio`."""

    @property
    def provider(self) -> str: ...

    @property
    def url(self) -> str: ...

    @property
    def model(self) -> str: ...

    @property
    def via(self) -> Via: ...

    @property
    def secret(self) -> str: ...


class Asking:
    """Asks over HTTP. `boundary` gives a new word for each form."""

    def __init__(self, http: Http, boundary: Callable[[], str]) -> None:
        self._http, self._boundary = http, boundary

    async def heard(
        self, listener: Listener, headers: Mapping[str, str], fields: Mapping[str, str], recording: Recording
    ) -> str:
        """The words as the provider gives them. Raises Fault; the caller bounds the time."""
        boundary = f"garra-{self._boundary()}"
        said = [("model", listener.model), ("response_format", "json"), *((k, v) for k, v in fields.items() if v)]
        body = await asyncio.to_thread(_form, recording, said, boundary)
        sent = {**headers, "content-type": f"multipart/form-data; boundary={boundary}", "accept": "application/json"}
        try:
            async with self._http.stream(
                "POST", listener.url, headers=sent, body=body, timeout=None, via=listener.via
            ) as answer:
                whole = await answer.read(LARGEST)
                status, told = answer.status, answer.headers
        except Unavailable as gone:
            raise _fault(failures.gone(gone), listener.secret) from None
        if status >= 300:
            raise _fault(failures.refused(status, whole.decode("utf-8", "replace"), told), listener.secret)
        try:
            return recordings.answered(whole)
        except ValueError as error:
            raise Fault(str(error) if type(error) is ValueError else "its answer cannot be read") from None


def _form(recording: Recording, fields: list[tuple[str, str]], boundary: str) -> bytes:
    try:
        data = recording.path.read_bytes()
    except OSError as error:
        raise Fault(f"the file cannot be read: {error.strerror}") from None
    kind = recordings.ending(data[:16], recording.mime, recording.name)
    plain = [(name, re.sub(r"[\r\n]+", " ", value)) for name, value in fields]
    return recordings.form(plain, data, kind, boundary)


def _fault(failure: Failure, secret: str) -> Fault:
    words = _WORDS.get(failure.kind, "it refused the recording")
    code = f"{failure.status}, " if failure.status else ""
    whole = failure.message.replace(secret, "[key]") if len(secret) >= 8 else failure.message
    return Fault(code + words, whole)
