"""What the servers of providers say of their models: asked now and then, kept in a file with its age.

`STATE/models/catalog.json` has, for each provider, when it was asked, at which address, its rows and its budget. It
can be removed at any time.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, Final

from garra.core import catalog as pure
from garra.core import foundations
from garra.core.errors import GarraError, Unavailable
from garra.core.value import frozen
from garra.domains.models.catalog import Entry
from garra.domains.models.profiles import Asked
from garra.domains.models.registry import Models
from garra.io.files import atomic
from garra.sdk import cloud
from garra.sdk.ports import Clock, Http

log = logging.getLogger(__name__)

FRESH_MS: Final = 60_000
"""A router is asked at most once in so long."""
LOOK_S: Final = 10.0
"""So often the file is looked at again."""
ASK_S: Final = 15.0
LARGEST: Final = 16 << 20
NAME: Final = "catalog.json"


@frozen
class Asking:
    """How asking one provider went: `count` models, or why none; `budget` in US dollars, where a key has one."""

    provider: str
    count: int = 0
    problem: str = ""
    budget: Mapping[str, float] = field(default_factory=dict)


class Discovery:
    """`file` keeps what was found. All is done on the loop's thread; files in another."""

    def __init__(self, models: Models, http: Http, clock: Clock, file: Path) -> None:
        self._models, self._http, self._clock, self._file = models, http, clock, file
        self._known: dict[str, dict[str, Any]] = {}
        self._looked: float | None = None
        self._asking: dict[str, asyncio.Lock] = {}
        self._keeping = asyncio.Lock()

    async def load(self) -> None:
        """Take what is kept; another process may have asked meanwhile."""
        now = self._clock.monotonic()
        if self._looked is None or now - self._looked >= LOOK_S:
            self._looked = now
            found = newest(self._known, await asyncio.to_thread(kept, self._file))
            if found != self._known:
                self._known = found
                self._tell()

    def age_ms(self, provider: str) -> int | None:
        """How old what is known of a provider is; None where nothing is."""
        at = self._known.get(provider, {}).get("at")
        return self._clock.now_ms() - at if isinstance(at, int) else None

    def budget(self, provider: str) -> Mapping[str, float]:
        found: Mapping[str, float] = self._known.get(provider, {}).get("budget") or {}
        return found

    async def ready(self, ref: str, agent: str = "") -> None:
        """Before a call: where the server decides which models there are, what it said must be fresh. A server that
        cannot be asked is no reason to stop.
        """
        await self.load()
        provider = ref.partition("/")[0]
        entry = self._models.entries().get(provider)
        if entry is not None and entry.provider.catalog == "clawrouter":
            asked = await self.ask(provider, agent)
            if asked.problem:
                log.warning("the models of %s: %s", provider, asked.problem)

    async def refresh(self, only: str = "", agent: str = "") -> list[Asking]:
        """Ask all that can be asked, or one."""
        await self.load()
        names = [only] if only else [name for name, entry in self._models.entries().items() if _asked(entry)]
        found = await asyncio.gather(*(self.ask(name, agent, force=True) for name in names))
        return [each for each in found if only or each.count or not _quiet(self._models.entries()[each.provider])]

    async def ask(self, provider: str, agent: str = "", *, force: bool = False) -> Asking:
        """Ask one provider's server, unless it was asked just now with the same key at the same address."""
        async with self._asking.setdefault(provider, asyncio.Lock()):
            entry = self._models.entries()[provider]
            try:
                key = (await self._models.profiles.credential(Asked(entry, "", self._models.env(), agent=agent))).secret
                scope = _scope(entry, key)
                known = self._known.get(provider, {})
                age = self.age_ms(provider)
                if known.get("scope") == scope and age is not None and age < FRESH_MS and not force:
                    return Asking(provider, len(known.get("rows", ())))
                rows, budget = await self._asked(entry, key)
            except GarraError as error:
                return Asking(provider, problem=error.message)
            if not rows and entry.provider.catalog != "clawrouter":
                return Asking(provider, problem="it lists no models")
            self._known[provider] = {
                "at": self._clock.now_ms(), "url": entry.provider.base_url, "scope": scope, "rows": rows,
                "budget": budget,
            }  # fmt: skip
            self._tell()
            async with self._keeping:
                await asyncio.to_thread(_keep, self._file, dict(self._known))
            return Asking(provider, len(rows), budget=budget)

    async def _asked(self, entry: Entry, key: str | None) -> tuple[dict[str, dict[str, Any]], dict[str, float]]:
        if entry.provider.catalog == "bedrock":
            return await self._bedrock(entry, key), {}
        base = entry.provider.base_url.rstrip("/")
        if entry.provider.catalog != "clawrouter":
            path = "/v1/models?limit=1000" if entry.provider.family == "anthropic-messages" else "/models"
            return pure.listed(await self._json(entry, f"{base}{path}", key)), {}
        root = base.removesuffix("/v1")
        rows = pure.granted(await self._json(entry, f"{root}/v1/catalog", key), root)
        try:
            return rows, pure.budget(await self._json(entry, f"{root}/v1/usage", key))
        except Unavailable:
            return rows, {}

    async def _bedrock(self, entry: Entry, key: str | None) -> dict[str, dict[str, Any]]:
        """Both lists, or none: half of them would take models away that are there."""
        if not key:
            raise Unavailable("AWS' lists are read with a Bedrock key alone (AWS_BEARER_TOKEN_BEDROCK)")
        env = self._models.env()
        address = cloud.filled(entry.model("any"), lambda *names: next(filter(None, map(env.get, names)), ""))
        base = foundations.control(address)
        return foundations.rows(*[await self._json(entry, f"{base}{path}", key) for path in foundations.LISTS])

    async def _json(self, entry: Entry, url: str, key: str | None) -> object:
        headers = {"accept": "application/json", **entry.provider.headers}
        if key:
            headers["authorization"] = f"Bearer {key}"
        if key and entry.provider.family == "anthropic-messages":
            headers |= {"anthropic-version": "2023-06-01"}
            if not key.startswith("sk-ant-oat"):
                headers |= {"x-api-key": key}
                del headers["authorization"]
        async with self._http.stream("GET", url, headers=headers, timeout=ASK_S, via=entry.via) as body:
            if body.status != 200:
                raise Unavailable(f"{url} answered {body.status}")
            text = await body.read(LARGEST)
        try:
            return json.loads(text)
        except ValueError:
            raise Unavailable(f"{url} answered with no JSON") from None

    def _tell(self) -> None:
        self._models.found({name: _rows(each) for name, each in self._known.items() if self._here(name, each)})

    def _here(self, provider: str, known: Mapping[str, Any]) -> bool:
        """Whether it was said by the server that is meant now."""
        entry = self._models.entries().get(provider)
        return entry is not None and known.get("url") == entry.provider.base_url


def _asked(entry: Entry) -> bool:
    return bool(entry.provider.base_url) and (
        entry.configured or entry.provider.probe or entry.provider.catalog != "" or entry.provider.auth == "key"
    )


def _quiet(entry: Entry) -> bool:
    """Whether it is no news that nobody answers: no key, or no such server here."""
    return not entry.configured


def _scope(entry: Entry, key: str | None) -> str:
    """Names address and key without telling them."""
    return hashlib.sha256(f"{entry.provider.base_url}\0{key or ''}".encode()).hexdigest()[:16]


def _rows(known: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    rows = known.get("rows")
    return (
        {str(name): dict(row) for name, row in rows.items() if isinstance(row, Mapping)}
        if isinstance(rows, Mapping)
        else {}
    )


def kept(file: Path) -> dict[str, dict[str, Any]]:
    """What the file has; nothing where it cannot be read. Blocks."""
    try:
        body = json.loads(atomic.read(file, LARGEST))
    except (OSError, ValueError, GarraError):
        return {}
    found = body.get("providers") if isinstance(body, dict) else None
    return (
        {str(name): each for name, each in found.items() if isinstance(each, dict)} if isinstance(found, dict) else {}
    )


def newest(one: Mapping[str, dict[str, Any]], other: Mapping[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Of each provider what was said last."""
    found = dict(one)
    for name, each in other.items():
        if name not in found or _at(each) > _at(found[name]):
            found[name] = each
    return found


def _at(known: Mapping[str, Any]) -> int:
    at = known.get("at")
    return at if isinstance(at, int) else 0


def _keep(file: Path, known: Mapping[str, Any]) -> None:
    try:
        with atomic.writing(file):
            atomic.folder(file.parent)
            body = {"version": 1, "providers": newest(known, kept(file))}
            atomic.write(file, json.dumps(body).encode())
    except GarraError as error:
        log.warning("what the servers of providers offer cannot be kept: %s", error.message)
