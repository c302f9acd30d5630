"""Files: uploaded to the server's own store (XEP-0363), fetched from where people put theirs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from xml.etree.ElementTree import Element

from garra.builtin.channels.xmpp.wire import Refused, Wire
from garra.core.errors import Unavailable
from garra.sdk.channel import Fault, File, LinkLost, Media, SendFailed
from garra.sdk.fetching import bounded
from garra.sdk.ports import Http, Via

UPLOAD = "{urn:xmpp:http:upload:0}"
ITEMS = "{http://jabber.org/protocol/disco#items}"
_HEADERS = frozenset({"authorization", "cookie", "expires"})


class Store:
    """The server's store for files, found when it is first needed."""

    def __init__(self, wire: Wire, http: Http, via: Via) -> None:
        self._wire, self._http, self._via = wire, http, via
        self._service: str | None = None

    async def put(self, file: File, data: bytes) -> str:
        """The address under which it can be had. Raises SendFailed."""
        try:
            service = await self._found()
            asked = {
                "filename": file.name,
                "size": str(len(data)),
                "content-type": file.mime or "application/octet-stream",
            }
            slot = await self._wire.ask("get", service, Element(f"{UPLOAD}request", asked))
        except Refused as refused:
            large = refused.fault.message.find("not-acceptable") >= 0
            raise SendFailed("too_large" if large else refused.fault.fault, refused.fault.message) from None
        except LinkLost as lost:
            raise SendFailed("passing", lost.message) from None
        put, get = slot.find(f"{UPLOAD}slot/{UPLOAD}put"), slot.find(f"{UPLOAD}slot/{UPLOAD}get")
        if put is None or get is None:
            raise SendFailed("refused", f"{service} gives no place for the file")
        headers = {"content-type": asked["content-type"]}
        for one in put.findall(f"{UPLOAD}header"):
            if one.get("name", "").lower() in _HEADERS:
                headers[one.get("name", "")] = " ".join((one.text or "").split())
        await self._upload(put.get("url", ""), headers, data)
        return get.get("url", "")

    async def _upload(self, url: str, headers: dict[str, str], data: bytes) -> None:
        """Nobody sees a file whose address was not told: whatever fails here can be tried again."""
        try:
            async with self._http.stream("PUT", url, headers=headers, body=data, via=self._via) as answer:
                status = answer.status
        except Unavailable as fault:
            raise SendFailed("passing", fault.message) from None
        if status >= 300:
            found: Fault = "too_large" if status == 413 else "passing" if status >= 500 or status == 429 else "refused"
            raise SendFailed(found, f"the server's store answers {status}")

    async def _found(self) -> str:
        if self._service is None:
            domain = self._wire.own.domain
            listed = await self._wire.ask("get", domain, Element(f"{ITEMS}query"))
            for one in (domain, *(item.get("jid", "") for item in listed.iter(f"{ITEMS}item"))):
                if one and UPLOAD.strip("{}") in await self._wire.features(one):
                    self._service = one
                    break
            else:
                raise SendFailed("refused", f"{domain} has no store for files (XEP-0363)")
        return self._service


async def fetched(http: Http, via: Via, media: Media, limit: int) -> AsyncIterator[bytes]:
    """The bytes behind an address that somebody named. Raises SendFailed."""
    try:
        async with http.stream("GET", media.ref, via=via) as answer:
            if answer.status != 200:
                gone = answer.status in {403, 404, 410}
                raise SendFailed("gone" if gone else "passing", f"the file's server answers {answer.status}")
            async for chunk in bounded(answer.chunks(), limit, media.name):
                yield chunk
    except Unavailable as fault:
        refused = (fault.details or {}).get("kind") == "refused"
        raise SendFailed("refused" if refused else "passing", fault.message) from None
