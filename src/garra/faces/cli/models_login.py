"""`garra models auth login` and its kin: how a secret gets in."""

from __future__ import annotations

import argparse
import asyncio
import getpass
import re
import sys
from collections.abc import Sequence
from typing import Any

from garra.config.load import load
from garra.core.errors import NotFound, UserError
from garra.core.letin import Device
from garra.core.profiles import Kind, Profile
from garra.core.secret import Secret
from garra.domains.models import ways
from garra.domains.models.catalog import Entry
from garra.domains.models.oauth import OAuth
from garra.domains.models.refresh import taken
from garra.domains.models.ways import Way
from garra.faces.cli import models_choose, models_here, output
from garra.faces.cli.models_here import Desk
from garra.faces.cli.place import Place

SPANS = {"m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
LONGEST = 16_384
_PASTED: dict[str, Kind] = {"setup-token": "token", "paste-token": "token", "paste-api-key": "api_key"}


def run(asked: argparse.Namespace, place: Place) -> int:
    kept, entry = asyncio.run(_run(asked, place))
    _told(asked, kept, _default(asked, place, entry))
    return 0


async def _run(asked: argparse.Namespace, place: Place) -> tuple[Profile, Entry]:
    async with models_here.opened(place) as desk:
        entry = await _provider(asked, desk)
        way = await _way(asked, entry)
        if getattr(asked, "force", False):
            for owned, each in desk.kept.profiles.items():
                if each.provider == entry.provider.id:
                    await desk.logins.remove(*owned)
        if way.kind == "oauth":
            profile = await _by_oauth(asked, desk, entry, way)
        else:
            profile = await _by_secret(asked, desk, entry, way)
        return await desk.logins.put(profile), entry


# ---- which


async def _provider(asked: argparse.Namespace, desk: Desk) -> Entry:
    if asked.provider:
        return desk.models.entries()[desk.models.provider(asked.provider)]
    names = [name for name, entry in desk.models.entries().items() if entry.provider.auth != "none"]
    _terminal("--provider NAME says whose login it is")
    name = await _chosen("Provider", names)
    return desk.models.entries()[desk.models.provider(name)]


async def _way(asked: argparse.Namespace, entry: Entry) -> Way:
    if asked.doing in _PASTED:
        return _pasting(asked, entry, _PASTED[asked.doing])
    if asked.doing == "login":
        method = "" if asked.method == "device-code" else asked.method
        if asked.device_code or asked.method == "device-code":
            return ways.way(entry, method, "oauth")
        if method:
            return ways.way(entry, method)
    listed = ways.ways(entry)
    if not listed:
        raise NotFound(f"{entry.provider.id} needs no login")
    if len(listed) == 1 or (asked.doing == "login" and (listed[0].kind == "oauth" or not sys.stdin.isatty())):
        return listed[0]
    _terminal("--method NAME says how to log in")
    return ways.way(entry, await _chosen("Way", [each.id for each in listed]))


def _pasting(asked: argparse.Namespace, entry: Entry, kind: Kind) -> Way:
    """The provider's own way for such a secret; any other where it has none."""
    try:
        return ways.way(entry, kind=kind)
    except NotFound:
        return Way(asked.doing, kind, "token" if kind == "token" else "API key")


async def _chosen(what: str, names: Sequence[str]) -> str:
    await _note(f"{what}: {', '.join(names)}")
    return (await asyncio.to_thread(input, f"{what} [{names[0]}]: ")).strip() or names[0]


def _terminal(otherwise: str) -> None:
    if not sys.stdin.isatty():
        raise UserError(otherwise)


# ---- how


async def _by_secret(asked: argparse.Namespace, desk: Desk, entry: Entry, way: Way) -> Profile:
    provider = entry.provider.id
    hint = f" ({way.hint})" if way.hint else ""
    if sys.stdin.isatty():
        text = await asyncio.to_thread(getpass.getpass, f"{entry.provider.name}, {way.name}{hint}: ")
    else:
        text = await asyncio.to_thread(sys.stdin.read, LONGEST + 1)
    text = text.strip()
    if not text or len(text) > LONGEST or any(letter.isspace() for letter in text):
        raise UserError("that is no key or token: one word is needed; nothing was kept")
    if asked.doing == "setup-token" and way.prefix and not text.startswith(way.prefix):
        raise UserError(f"such a token begins with {way.prefix}; nothing was kept")
    if way.kind == "api_key" and text.startswith("sk-ant-oat"):
        raise UserError("that is a subscription's token: keep it with `garra models auth setup-token`")
    id_ = getattr(asked, "profile_id", "") or f"{provider}:manual"
    span = getattr(asked, "expires_in", "")
    ends = _ends(span, desk) if span else (way.days * SPANS["d"] + desk.clock.now_ms() if way.days else None)
    return Profile(_id(id_, provider), provider, way.kind, Secret(text), expires_ms=ends, agent=asked.agent)


def _ends(span: str, desk: Desk) -> int:
    found = re.fullmatch(r"(\d{1,5})([mhdw])", span.strip().lower())
    if found is None or not int(found[1]):
        raise UserError(f"{span!r} is no span: write 90m, 12h, 365d or 52w")
    return desk.clock.now_ms() + int(found[1]) * SPANS[found[2]]


def _id(text: str, provider: str) -> str:
    if not re.fullmatch(r"[\w.@:+-]{1,200}", text):
        raise UserError(f"{text!r} is no name for a login: letters, digits and . _ - + @ : as in {provider}:work")
    return text if ":" in text else f"{provider}:{text}"


async def _by_oauth(asked: argparse.Namespace, desk: Desk, entry: Entry, way: Way) -> Profile:
    provider, issuer = entry.provider.id, way.issuer
    if issuer is None:
        raise NotFound(f"{provider} has no issuer for {way.id}")
    oauth = OAuth(desk.http, desk.clock, desk.tasks, entry.via)
    if asked.device_code or asked.method == "device-code" or not issuer.authorize_url:
        tokens = await oauth.device(issuer, _entered)
    else:
        tokens = await oauth.browser(issuer, _shown, _Pasting().line)
    id_ = asked.profile_id or f"{provider}:{tokens.email or 'default'}"
    blank = Profile(_id(id_, provider), provider, "oauth", agent=asked.agent)
    return taken(ways.marked(blank, way), tokens)


async def _note(text: str) -> None:
    await asyncio.to_thread(output.note, text)


async def _entered(device: Device) -> None:
    lines = [f"Open {device.verify_url} on any device, and enter the code {device.user_code}"]
    if device.whole_url:
        lines.append(f"or open {device.whole_url}")
    lines.append("Enter it only if you began this login yourself. Waiting …")
    await _note(output.harmless("\n".join(lines)))


async def _shown(url: str) -> None:
    await _note(
        f"Open this address in a browser:\n\n{url}\n\n"
        "On another machine (SSH): open it there, then paste here the address that the browser ends at."
    )


class _Pasting:
    """Lines of standard input; where there is none, nobody pastes."""

    def __init__(self) -> None:
        self._reader: asyncio.StreamReader | None = None

    async def line(self, wrong: str) -> str:
        if wrong:
            await _note(f"garra: {wrong}")
        try:
            line = await (await self._opened()).readline()
        except (OSError, ValueError):
            line = b""
        if not line:
            await asyncio.Event().wait()
        return line.decode("utf-8", "replace")

    async def _opened(self) -> asyncio.StreamReader:
        if self._reader is None:
            reader = self._reader = asyncio.StreamReader()
            loop = asyncio.get_running_loop()
            await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        return self._reader


# ---- after


def _default(asked: argparse.Namespace, place: Place, entry: Entry) -> str:
    """The model that was made the one that answers."""
    if not getattr(asked, "set_default", False):
        return ""
    name = entry.provider.default or next(iter(entry.listed()), "")
    if not name:
        output.note(
            f"{entry.provider.id} has no usual model: choose one with `garra models set {entry.provider.id}/MODEL`"
        )
        return ""
    ref = f"{entry.provider.id}/{name}"
    models_choose.choose(place, load(place.paths, place.env), ref)
    return ref


def _told(asked: argparse.Namespace, kept: Profile, chosen: str) -> None:
    body: dict[str, Any] = {"profileId": kept.id, "provider": kept.provider, "type": kept.kind}
    if asked.json:
        output.say_json({"ok": True, **body, **({"defaultModel": chosen} if chosen else {})})
        return
    whose = f" as {kept.email}" if kept.email else ""
    output.say(f"{kept.id} is kept ({kept.kind}{whose}). A gateway that runs takes it up within seconds.")
    if chosen:
        output.say(f"{chosen} answers from now on.")
