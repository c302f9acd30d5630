"""`garra models auth`: the logins of providers that this installation keeps. Secrets go in, and never come out."""

from __future__ import annotations

import argparse
import asyncio
import importlib
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from garra.config.write import Writer
from garra.core.errors import Forbidden, NotFound, UserError
from garra.core.profiles import OWNER, Profile
from garra.domains.models import standing
from garra.faces.cli import models_here, output
from garra.faces.cli.models_here import Desk
from garra.faces.cli.models_status import left
from garra.faces.cli.parsing import parser, with_json
from garra.faces.cli.place import Place

Told = tuple[dict[str, Any], str]
"""What is said as JSON, and in words."""
LOGIN = {"add", "login", "setup-token", "paste-token", "paste-api-key"}
"""What `models_login` does."""


def run(_step: str, words: Sequence[str], place: Place) -> int:
    asked = _parsed(words)
    doing = asked.doing or "list"
    if doing != "list" and (doing, getattr(asked, "what", "")) != ("order", "get") and place.agents:
        raise Forbidden("an agent's commands may not change logins: their owner does, in another terminal")
    if doing in LOGIN:
        return int(importlib.import_module("garra.faces.cli.models_login").run(asked, place))
    if doing == "activate":
        return int(importlib.import_module("garra.faces.cli.models_activate").run(asked, place))
    if doing == "logout" and not asked.yes and sys.stdin.isatty() and not _sure(asked.profile):
        return 1
    body, text = asyncio.run({"list": _list, "order": _order, "logout": _logout}[doing](asked, place))
    if asked.json:
        output.say_json(body)
    else:
        output.say(text)
    return 0


def _parsed(words: Sequence[str]) -> argparse.Namespace:
    whole = parser("models auth", "Logins of model providers.")
    whole.add_argument("--agent", default="", metavar="ID", help="this agent's own; else those that all agents share")
    doing = whole.add_subparsers(dest="doing", metavar="COMMAND")

    def step(name: str, about: str) -> argparse.ArgumentParser:
        made: argparse.ArgumentParser = doing.add_parser(
            name, help=about, description=f"{about[0].upper()}{about[1:]}."
        )
        made.add_argument("--agent", default=argparse.SUPPRESS, metavar="ID", help=argparse.SUPPRESS)
        return with_json(made)

    step("list", "what is kept, without the secrets").add_argument(
        "--provider", default="", help="only this provider's"
    )
    step("add", "choose a provider and a way to log in").add_argument(
        "--provider", default="", help="which provider; else it is asked for"
    )
    login = step("login", "log in at a provider")
    login.add_argument("--provider", default="", help="whose; asked for at a terminal")
    login.add_argument("--method", default="", help="one of its ways to log in")
    login.add_argument("--device-code", action="store_true", help="show a code that is entered on any device")
    login.add_argument("--set-default", action="store_true", help="also make its usual model the one that answers")
    login.add_argument("--force", action="store_true", help="forget the provider's other logins first")
    for name, about in (
        ("setup-token", "keep a subscription's token (claude setup-token)"),
        ("paste-token", "keep a token"),
        ("paste-api-key", "keep an API key"),
    ):
        pasting = step(name, f"{about}; it is asked for, or read from standard input")
        pasting.add_argument("--provider", default="anthropic" if name == "setup-token" else "", help="whose it is")
        pasting.add_argument("--expires-in", default="", metavar="SPAN", help="how long it lives, as 365d or 12h")
    for each in ("login", "setup-token", "paste-token", "paste-api-key"):
        doing.choices[each].add_argument("--profile-id", default="", metavar="ID", help="another name for it")
    order = step("order", "which login of a provider is taken first: get, set, clear")
    order.add_argument("what", choices=("get", "set", "clear"), help="show, set or forget the order")
    order.add_argument("profiles", nargs="*", metavar="PROFILE", help="logins, the first to be taken first")
    order.add_argument("--provider", required=True, help="which provider")
    active = step("activate", "try a login, and where it answers take it, and a model of its provider, from now on")
    active.add_argument("profile", metavar="PROFILE", help="which login")
    leaving = step("logout", "forget a login")
    leaving.add_argument("profile", metavar="PROFILE", help="which login")
    leaving.add_argument("--yes", action="store_true", help="without asking")
    found = whole.parse_args(words)
    found.json = getattr(found, "json", False)
    found.provider = getattr(found, "provider", "")
    return found


async def _list(asked: argparse.Namespace, place: Place) -> Told:
    async with models_here.opened(place) as desk:
        only = desk.models.provider(asked.provider) if asked.provider else ""
        agents = ("", "main", asked.agent) if asked.agent else None
        listed = [
            each
            for each in desk.kept.profiles.values()
            if only in ("", each.provider) and (agents is None or each.agent in agents)
        ]
        now = desk.clock.now_ms()
        rests = {each["profileId"]: each for each in standing.rests(desk.kept, now)}
        profiles = [_row(each, rests.get(each.id)) for each in sorted(listed, key=lambda each: each.id)]
        body = {**_head(asked, desk), "provider": only or None, "profiles": profiles}
        if not listed:
            return body, "No logins are kept. `garra models auth login --provider NAME` makes one."
        rows = [_line(each, rests.get(each.id), now) for each in listed]
        return body, output.table(rows, ("LOGIN", "PROVIDER", "KIND", "STANDS", "ENDS IN", "RESTS"))


def _line(profile: Profile, rest: dict[str, Any] | None, now: int) -> tuple[str, ...]:
    ends = standing.ends_ms(profile)
    until = f"{left(rest['remainingMs'])} ({rest['reason']})" if rest else "-"
    whose = f"{standing.label(profile)} of {profile.agent}" if profile.agent else standing.label(profile)
    return (
        whose, profile.provider, profile.kind, standing.standing(profile, now),
        left(None if ends is None else ends - now), until,
    )  # fmt: skip


def _row(profile: Profile, rest: dict[str, Any] | None) -> dict[str, Any]:
    ends = standing.ends_ms(profile)
    shown: dict[str, Any] = {
        "id": profile.id, "provider": profile.provider, "type": profile.kind, "label": standing.label(profile),
    }  # fmt: skip
    if ends is not None:
        shown["expiresAt"] = moment(ends)
    if profile.email:
        shown["email"] = profile.email
    if profile.agent:
        shown["agentId"] = profile.agent
    if profile.extra.get(OWNER):
        shown["managedBy"] = profile.extra[OWNER]
    if rest:
        name = "disabled" if rest["kind"] == "disabled" else "cooldown"
        shown[f"{name}Until"], shown[f"{name}Reason"] = moment(rest["until"]), rest["reason"]
    return shown


def moment(at_ms: int) -> str:
    """A moment as JSON has it."""
    return datetime.fromtimestamp(at_ms / 1_000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _head(asked: argparse.Namespace, desk: Desk) -> dict[str, Any]:
    agent = asked.agent or "main"
    paths = desk.place.paths
    return {"agentId": agent, "agentDir": str(paths.agents / agent / "agent"), "authStatePath": str(paths.db)}


async def _order(asked: argparse.Namespace, place: Place) -> Told:
    async with models_here.opened(place) as desk:
        provider, ids = desk.models.provider(asked.provider), tuple(dict.fromkeys(asked.profiles))
        if asked.what == "set":
            known = {each.id for each in desk.kept.profiles.values() if each.provider == provider}
            if not ids:
                raise UserError("name the logins, the first to be taken first")
            if strange := [each for each in ids if each not in known]:
                raise NotFound(f"{provider} has no login {strange[0]}; there are: {', '.join(sorted(known)) or 'none'}")
        if asked.what != "get":
            await desk.logins.order(asked.agent, provider, ids if asked.what == "set" else None)
            desk = models_here.renewed(desk, await desk.logins.load())
        order = desk.kept.orders.get((asked.agent, provider))
        body = {**_head(asked, desk), "provider": provider, "order": None if order is None else list(order)}
        if order is None:
            return body, f"No order is set for {provider}: whichever login was used longest ago comes first."
        return body, "\n".join(order)


async def _logout(asked: argparse.Namespace, place: Place) -> Told:
    async with models_here.opened(place) as desk:
        found = [each for each in desk.kept.profiles.values() if each.id == asked.profile]
        found = [each for each in found if each.agent == asked.agent] or found
        if not found:
            raise NotFound(f"no login {asked.profile} is kept; `garra models auth list` lists them")
        if found[0].extra.get(OWNER):
            owner = found[0].extra[OWNER]
            raise UserError(f"{asked.profile} is the login of {owner}: log out there")
        if not await desk.logins.remove(found[0].agent, asked.profile):
            raise UserError(
                f"{asked.profile} stands in agents/{found[0].agent}/agent/auth-profiles.json: remove it there"
            )
        await asyncio.to_thread(_forget, desk, found[0])
        words = f"{asked.profile} is forgotten here. The key itself is revoked at the provider."
        return {"ok": True, "profileId": asked.profile}, words


def _sure(name: str) -> bool:
    return input(f"Forget {name}? [y/N] ").strip().lower() in {"y", "yes"}


def _forget(desk: Desk, profile: Profile) -> None:
    """Out of the configuration, too, so that no name there leads nowhere."""
    writer = Writer(desk.place.paths, desk.place.env)
    auth = desk.snapshot.config.auth
    if profile.id in auth.profiles:
        writer.unset(("auth", "profiles", profile.id))
    for provider, ids in auth.order.items():
        if profile.id in ids:
            rest = [each for each in ids if each != profile.id]
            path = ("auth", "order", provider)
            _ = writer.set(path, rest) if rest else writer.unset(path)
