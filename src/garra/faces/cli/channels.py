"""`garra channels`: which chat accounts there are, how their links fare; add, remove, start and stop one."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Mapping, Sequence
from typing import Any

from garra.client import quick
from garra.client.socket import Unreachable
from garra.core.errors import UserError
from garra.faces.cli import channel_accounts as chosen
from garra.faces.cli import output, parsing, place
from garra.faces.cli.channel_accounts import DEFAULT
from garra.faces.cli.place import Place
from garra.io.clock import SystemClock

SCOPES = ("operator.admin", "operator.read")

OWN = ("webchat/default", "WebChat", "always there", "the gateway's own chat: terminal, apps")
"""It stands in no configuration."""

SAME = "the channel, given as an option"
ADDING = """\
Add a chat account, or change its credential. Packages that its channel needs and that are missing are installed first.
For a Telegram bot: write /newbot to @BotFather in Telegram; it answers with the bot's token."""
EXAMPLES = """\
examples:
  garra channels add telegram --token 123456789:AAE…
  garra channels add telegram --token-file ~/bot-token --account work --name Work
  garra channels status"""


def run(arguments: Sequence[str]) -> int:
    asked = _parser().parse_args(list(arguments))
    doing = {
        "list": _list,
        "status": _status,
        "add": _add,
        "install": _install,
        "remove": _remove,
        "start": _start,
        "stop": _stop,
    }
    return doing[asked.doing or "list"](place.here(), asked)


def _parser() -> argparse.ArgumentParser:
    parser = parsing.parser("channels", "Chat accounts: which there are, how their links fare, and changing them.")
    plain = parsing.with_json(argparse.ArgumentParser(add_help=False))
    common = parsing.with_target(argparse.ArgumentParser(add_help=False, parents=[plain]))
    doing = parser.add_subparsers(dest="doing", metavar="COMMAND")
    listing = _step(doing, "list", "the configured accounts, without asking the gateway", plain)
    listing.add_argument("--channel", metavar="NAME", help="only this one's")
    listing.add_argument("--all", action="store_true", help="the channels without an account too")
    status = _step(doing, "status", "how each account's link fares, as the gateway sees it", common)
    status.add_argument("--channel", metavar="NAME", help="only this one")
    status.add_argument("--probe", action="store_true", help="with what each channel knows of itself")
    _adding(doing, plain)
    installing = _step(doing, "install", "install the packages that a channel needs, and no more", plain)
    installing.add_argument("named", nargs="?", metavar="CHANNEL", help="such as matrix")
    installing.add_argument("--channel", metavar="NAME", help=SAME)
    removing = _step(
        doing,
        "remove",
        "switch an account off, or delete it (--delete)",
        plain,
        more="Without --delete it keeps its settings, and `garra channels add CHANNEL` switches it on again.",
    )
    _named(removing)
    removing.add_argument("--delete", action="store_true", help="take it out of the configuration")
    started = "After a restart of the gateway every account that is on is started again."
    _named(_step(doing, "start", "start an account's link", common))
    _named(_step(doing, "stop", "stop an account's link until it is started again", common, more=started))
    parser.set_defaults(json=False, url="", token="", password="", all=False, channel=None)
    return parser


def _step(
    doing: Any, name: str, about: str, parent: argparse.ArgumentParser, *, more: str = ""
) -> argparse.ArgumentParser:
    words = f"{about[0].upper()}{about[1:]}. {more}".strip()
    made: argparse.ArgumentParser = doing.add_parser(name, parents=[parent], help=about, description=words)
    return made


def _adding(doing: Any, plain: argparse.ArgumentParser) -> None:
    adding: argparse.ArgumentParser = doing.add_parser(
        "add",
        parents=[plain],
        help="add an account, or change its credential",
        description=ADDING,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _named(adding)
    token = "its credential; for Telegram the token that @BotFather gives, like 123456789:AAE…"
    adding.add_argument("--token", "--bot-token", dest="credential", metavar="TEXT", help=token)
    file = "a file that holds the credential, so that it stands in no shell history; read at each start"
    adding.add_argument("--token-file", metavar="FILE", help=file)
    variable = "take the credential from the gateway's environment at each start, such as TELEGRAM_BOT_TOKEN"
    adding.add_argument("--use-env", action="store_true", help=variable)
    only = "write the configuration only, though packages that the channel needs are missing"
    adding.add_argument("--no-install", action="store_true", help=only)
    adding.add_argument("--name", metavar="TEXT", help="what to call the account in lists")
    setting = "another setting of the channel, such as dmPolicy=allowlist; may be given more than once"
    adding.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help=setting)


def _named(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("named", nargs="?", metavar="CHANNEL", help="such as telegram")
    parser.add_argument("--channel", metavar="NAME", help=SAME)
    parser.add_argument("--account", default=DEFAULT, metavar="ID", help="which of its accounts (default)")


def _which(asked: argparse.Namespace) -> tuple[str, str]:
    """The channel and account meant. Raises UserError."""
    channel = _channel_meant(asked, "telegram")
    if not asked.account.strip():
        raise UserError("--account is empty; leave it out for the default account")
    return channel, asked.account.strip()


def _channel_meant(asked: argparse.Namespace, example: str) -> str:
    channel: str = asked.channel or asked.named or ""
    if not channel:
        raise UserError(f"which channel? For example: garra channels {asked.doing} {example}")
    return channel


# ---- looking


def _list(here: Place, asked: argparse.Namespace) -> int:
    channels, setups = chosen.known(here)
    if asked.channel:
        chosen.plugin(here, asked.channel)
        setups = [setup for setup in setups if setup.channel == asked.channel]
    if asked.json:
        output.say_json(
            {"channels": [_channel(plugin, setups) for plugin in channels if asked.all or _has(plugin, setups)]}
        )
        return 0
    rows = [(str(setup.key), setup.name or setup.label, _state(setup), setup.fault) for setup in setups]
    if asked.all:
        rows += [
            (part.name, plugin.manifest.name, "no account", "")
            for plugin in channels
            for part in plugin.manifest.parts
            if not _has(plugin, setups)
        ]
    own = [] if asked.channel else [OWN]
    if rows or own:
        output.say(output.table([*rows, *own], ("ACCOUNT", "NAME", "STATE", "")).rstrip())
    if not rows and asked.channel:
        output.say(f"{asked.channel} has no account. Add one: {here.command} channels add {asked.channel}")
    elif not rows:
        output.say(f"No other chat account yet. {_first(here)}")
    return 0


def _first(here: Place) -> str:
    return f"Add one: {here.command} channels add telegram --token TOKEN"


def _has(plugin: Any, setups: list[Any]) -> bool:
    return any(setup.channel == part.name for setup in setups for part in plugin.manifest.parts)


def _state(setup: Any) -> str:
    if not setup.enabled:
        return "off"
    return ("not usable" if setup.fault else "on") if setup.configured else "no credential"


def _channel(plugin: Any, setups: list[Any]) -> dict[str, Any]:
    names = {part.name for part in plugin.manifest.parts}
    own = [setup for setup in setups if setup.channel in names]
    return {
        "id": plugin.id,
        "label": plugin.manifest.name,
        "installed": True,
        "origin": plugin.origin,
        "accounts": [
            {
                "accountId": setup.account.id,
                "name": setup.name or None,
                "enabled": setup.enabled,
                "configured": setup.configured,
                "fault": setup.fault or None,
                "sources": dict(setup.sources),
            }
            for setup in own
        ],
    }


def _status(here: Place, asked: argparse.Namespace) -> int:
    wanted = {"probe": asked.probe} | ({"channel": asked.channel} if asked.channel else {})
    try:
        found = quick.call(here.target(parsing.wanted(asked)), "channels.status", wanted, scopes=("operator.read",))
    except Unreachable:
        output.note(f"No gateway answers; this is what is configured. Start one with: {here.command} gateway run")
        return _list(here, asked)
    if asked.json:
        output.say_json(found)
        return 0
    if asked.channel and not found["channelOrder"]:
        output.say(f"{asked.channel} has no account. Add one: {here.command} channels add {asked.channel}")
        return 0
    now = SystemClock().now_ms()
    rows = [_line(channel, row, now) for channel in found["channelOrder"] for row in found["channelAccounts"][channel]]
    if rows:
        output.say(output.table(rows, ("ACCOUNT", "BOT", "STATE", "LAST MESSAGE", "")).rstrip())
    if not asked.channel and not any(name != OWN[0].partition("/")[0] for name in found["channelOrder"]):
        output.say(f"No other chat account yet. {_first(here)}" if rows else f"No chat account yet. {_first(here)}")
    return 0


def _line(channel: str, row: Mapping[str, Any], now: int) -> tuple[str, ...]:
    bot = row.get("bot") or {}
    shown = f"@{bot['username']}" if bot.get("username") else str(bot.get("name") or row.get("name") or "")
    state = str(row.get("statusState", ""))
    if since := row.get("stalledSince"):
        state = f"stalled since {_ago(since, now)}"
    elif row.get("nextStartAt"):
        state = f"waiting, try {row.get('reconnectAttempts', 0) + 1} in {max(0, row['nextStartAt'] - now) // 1000} s"
    if not row.get("enabled"):
        state = "off"
    last = _ago(row["lastInboundAt"], now) if row.get("lastInboundAt") else "never"
    return f"{channel}/{row['accountId']}", shown, state, last, str(row.get("lastError") or row.get("note") or "")


def _ago(when: int, now: int) -> str:
    seconds = max(0, now - when) // 1000
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length:
            return f"{seconds // length} {unit} ago"
    return f"{seconds} s ago"


# ---- changing


def _add(here: Place, asked: argparse.Namespace) -> int:
    adding = importlib.import_module("garra.faces.cli.channel_add")  # the configuration's types are heavy
    channel, account = _which(asked)
    code: int = adding.add(here, asked, channel, account)
    return code


def _packages() -> Any:
    return importlib.import_module("garra.faces.cli.plugin_packages")  # starts programs, which most commands do not


def _install(here: Place, asked: argparse.Namespace) -> int:
    channel = _channel_meant(asked, "matrix")
    plugin = chosen.plugin(here, channel)
    manifest = plugin.manifest
    done = bool(manifest.imports) and _packages().install(here, plugin)
    if asked.json:
        output.say_json({"channel": channel, "installed": done})
    elif done:
        output.say(f"{manifest.name} has its packages; a running gateway takes up its accounts by itself.")
    else:
        output.say(f"{manifest.name} has all it needs.")
    return 0


def _remove(here: Place, asked: argparse.Namespace) -> int:
    channel, account = _which(asked)
    whole = chosen.removed(here, channel, account) if asked.delete else False
    if not asked.delete:
        chosen.switched_off(here, channel, account)
    done = "deleted" if whole else "off"
    if asked.json:
        output.say_json({"channel": channel, "accountId": account, "removed": done})
        return 0
    output.say(f"{channel}/{account} is {done}.")
    which = channel if account == DEFAULT else f"{channel} --account {account}"
    if asked.delete and not whole:
        output.say("Its settings stay, since the other accounts of the channel have theirs from them.")
    if not whole:
        output.say(f"On again: {here.command} channels add {which}")
    if not asked.delete:
        output.say(f"Out of the configuration: {here.command} channels remove {which} --delete")
    return 0


def _start(here: Place, asked: argparse.Namespace) -> int:
    return _told(here, asked, "channels.start", "is started")


def _stop(here: Place, asked: argparse.Namespace) -> int:
    return _told(here, asked, "channels.stop", "is stopped until it is started again")


def _told(here: Place, asked: argparse.Namespace, method: str, words: str) -> int:
    channel, account = _which(asked)
    params = {"channel": channel, "accountId": account}
    try:
        found = quick.call(here.target(parsing.wanted(asked)), method, params, scopes=SCOPES)
    except Unreachable as fault:
        raise UserError(f"the gateway holds the links: {fault}") from None
    if asked.json:
        output.say_json(found)
    else:
        output.say(f"{channel}/{account} {words}.")
    return 0
