"""`garra models auth`: the logins of model providers that are kept, in which order they are taken, and adding a key.

They are in the state database; a gateway that runs sees a change within ten seconds.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from garra.config.load import load
from garra.config.sections import Config
from garra.core import cooldowns, failures, profiles
from garra.core.cooldowns import Health
from garra.core.errors import GarraError, NotFound, UserError
from garra.core.profiles import Profile
from garra.core.secret import Secret
from garra.domains.models.logins import Kept, Logins
from garra.domains.models.profiles import SHARED
from garra.faces.cli import output, parsing
from garra.faces.cli.place import Place
from garra.io.clock import SystemClock
from garra.io.store.db import Database

Step = Callable[[Logins, argparse.Namespace, Config], Awaitable[int]]
SEEN = "A gateway that runs sees it within ten seconds."


def run(arguments: Sequence[str], place: Place) -> int:
    """Exit code 0 when done, 1 when it could not be done, 2 when the command line is wrong."""
    asked = _asked(list(arguments) or ["list"])
    step: Step = {"list": _list, "order": _order, "use": _use, "paste-api-key": _paste, "logout": _logout}[asked.doing]
    try:
        return asyncio.run(_with_logins(step, asked, place))
    except GarraError as fault:
        if asked.json:
            output.say_json({"ok": False, "error": {"type": "cli_error", "message": fault.message}})
        else:
            output.note(f"garra: {fault.message}")
        return 1


def _asked(arguments: list[str]) -> argparse.Namespace:
    """`order set` takes its ids on either side of its options."""
    parser = _parser()
    asked, rest = parser.parse_known_args(arguments)
    if asked.doing == "order" and not any(word.startswith("-") for word in rest):
        asked.ids = [*asked.ids, *rest]
    elif rest:
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    return asked


async def _with_logins(step: Step, asked: argparse.Namespace, place: Place) -> int:
    config = load(place.paths, place.env).config
    db = Database(place.paths.db)
    try:
        return await step(Logins(db, SystemClock(), place.paths.agents), asked, config)
    finally:
        await db.close()


def _parser() -> argparse.ArgumentParser:
    parser = parsing.parser("models auth", "The logins of model providers: which are kept, and which comes first.")
    common = parsing.with_json(argparse.ArgumentParser(add_help=False))
    common.add_argument("--agent", default="main", metavar="ID", help="whose (main's serve all agents)")
    doing = parser.add_subparsers(dest="doing", metavar="COMMAND", required=True)

    def made(name: str, about: str) -> argparse.ArgumentParser:
        words = f"{about[0].upper()}{about[1:]}."
        found: argparse.ArgumentParser = doing.add_parser(name, parents=[common], help=about, description=words)
        return found

    made("list", "the logins that are kept, without their secrets").add_argument("--provider", default="")
    order = made("order", "show, set or forget the order in which a provider's logins are taken")
    order.add_argument("what", choices=("get", "set", "clear"))
    order.add_argument("ids", nargs="*", metavar="ID", help="the first is taken first; those not named are not used")
    order.add_argument("--provider", required=True)
    made("use", "take this login first for its provider").add_argument("id", metavar="ID")
    paste = made("paste-api-key", "keep a key, read from standard input")
    paste.add_argument("--provider", required=True)
    paste.add_argument("--profile-id", default="", metavar="ID", help="under this name instead of PROVIDER:manual")
    made("logout", "forget a login; the key itself stays valid at the provider").add_argument("id", metavar="ID")
    return parser


def mine(kept: Kept, agent: str) -> dict[str, Profile]:
    """The logins that an agent sees, by id; its own before the common ones."""
    shared = {id_: each for (owner, id_), each in kept.profiles.items() if owner in SHARED}
    return shared | {id_: each for (owner, id_), each in kept.profiles.items() if owner == agent}


async def _list(logins: Logins, asked: argparse.Namespace, config: Config) -> int:
    kept = await logins.load()
    now = SystemClock().now_ms()
    found = [each for each in mine(kept, asked.agent).values() if asked.provider in ("", each.provider)]
    rows = [_row(each, kept.health.get((each.agent, each.id), Health()), now) for each in found]
    if asked.json:
        output.say_json({"agentId": asked.agent, "profiles": rows, "problems": list(kept.problems)})
        return 0
    for problem in kept.problems:
        output.note(f"garra: {problem}")
    if not rows:
        output.say("No login is kept; keys of the configuration and the environment count.")
        return 0
    lines = [(row["profileId"], row["type"], row["email"] or "", row["state"]) for row in rows]
    output.say(output.table(lines, ("LOGIN", "KIND", "ACCOUNT", "STATE")))
    return 0


def _row(profile: Profile, health: Health, now: int) -> dict[str, Any]:
    unfit = profiles.unfit(profile, now)
    rest = cooldowns.rest(health, "", now) or max(
        (each for each in health.models.values() if each.until_ms > now), key=lambda each: each.until_ms, default=None
    )
    rests = f"rests {failures.span(rest.until_ms - now)} ({rest.reason})" if rest is not None else ""
    return {
        "profileId": profile.id,
        "provider": profile.provider,
        "type": profile.kind,
        "email": profile.email or None,
        "agentId": profile.agent or "main",
        "expires": profile.expires_ms,
        "reasonCode": unfit or "ok",
        "lastUsed": health.used_ms or None,
        "cooldownUntil": rest.until_ms if rest is not None else None,
        "cooldownReason": rest.reason if rest is not None else None,
        "state": unfit or rests or "ready",
    }


async def _order(logins: Logins, asked: argparse.Namespace, config: Config) -> int:
    provider = asked.provider.lower()
    if asked.what == "get":
        kept = await logins.load()
        stored = kept.orders.get((asked.agent, provider))
        configured = config.auth.order.get(provider)
        shown = stored if stored is not None else configured
        where = "stored" if stored is not None else "auth.order" if configured is not None else ""
        if asked.json:
            output.say_json({"provider": provider, "agentId": asked.agent, "order": shown and list(shown),
                             "source": where or None})  # fmt: skip
        else:
            output.say(f"{' '.join(shown or ())} ({where})" if where else "No order is set: they take turns.")
        return 0
    if asked.what == "set":
        await _known(logins, asked, provider, asked.ids)
    await logins.order(asked.agent, provider, tuple(asked.ids) if asked.what == "set" else None)
    return _done(asked, f"The order of {provider}'s logins is {'set' if asked.what == 'set' else 'forgotten'}. {SEEN}")


async def _known(logins: Logins, asked: argparse.Namespace, provider: str, ids: Sequence[str]) -> None:
    if not ids:
        raise UserError("name the logins in their order; `garra models auth list` shows them")
    found = mine(await logins.load(), asked.agent)
    for id_ in ids:
        if id_ not in found or found[id_].provider != provider:
            raise NotFound(f"{provider} has no login {id_} here; `garra models auth list` shows them")


async def _use(logins: Logins, asked: argparse.Namespace, config: Config) -> int:
    kept = await logins.load()
    found = mine(kept, asked.agent)
    if asked.id not in found:
        raise NotFound(f"there is no login {asked.id} here; `garra models auth list` shows them")
    provider = found[asked.id].provider
    before = kept.orders.get((asked.agent, provider), config.auth.order.get(provider))
    behind = before if before is not None else [each.id for each in found.values() if each.provider == provider]
    await logins.order(asked.agent, provider, tuple(dict.fromkeys((asked.id, *behind))))
    return _done(asked, f"{asked.id} is taken first from now on. {SEEN}")


async def _paste(logins: Logins, asked: argparse.Namespace, config: Config) -> int:
    if sys.stdin.isatty():
        output.note("Paste the key, then press Enter:")
    key = (await asyncio.to_thread(sys.stdin.readline)).strip()
    if not key:
        raise UserError("no key came on standard input")
    provider = asked.provider.lower()
    id_ = asked.profile_id or f"{provider}:manual"
    agent = "" if asked.agent == "main" else asked.agent
    await logins.put(Profile(id_, provider, "api_key", Secret(key), agent=agent))
    return _done(asked, f"Kept as {id_}. {SEEN}")


async def _logout(logins: Logins, asked: argparse.Namespace, config: Config) -> int:
    gone = [await logins.remove(owner, asked.id) for owner in dict.fromkeys((asked.agent, *SHARED))]
    if not any(gone):
        raise NotFound(f"the store has no login {asked.id}; `garra models auth list` shows them")
    return _done(asked, f"{asked.id} is forgotten; at the provider it stays valid. {SEEN}")


def _done(asked: argparse.Namespace, words: str) -> int:
    if asked.json:
        output.say_json({"ok": True})
    else:
        output.say(words)
    return 0
