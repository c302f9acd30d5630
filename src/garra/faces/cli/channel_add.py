"""`garra channels add`: an account written only when it can start, and what its owner does next."""

from __future__ import annotations

import argparse
import difflib
import importlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from garra.app import accounts as app
from garra.config.sections.channels import account_rules
from garra.config.write import Writer
from garra.core.errors import UserError
from garra.core.schema import faults
from garra.domains.delivery import accounts
from garra.domains.delivery.accounts import HOST_KEYS, LinkKey, Setup
from garra.domains.plugins import packages
from garra.domains.plugins.discover import Plugin
from garra.faces.cli import channel_accounts as chosen
from garra.faces.cli import output
from garra.faces.cli.place import Place
from garra.io import names


def add(here: Place, asked: argparse.Namespace, channel: str, account: str) -> int:
    """Exit code 0 when it can start, 1 when it cannot for want of packages, or as before. Raises UserError, and then
    nothing is written.
    """
    plugin = chosen.plugin(here, channel)
    schema = plugin.manifest.settings
    values = {"enabled": True, **_credential(here, schema, asked), **_settings(schema, asked.set)}
    before = chosen.one(chosen.known(here)[1], channel, account)
    merged = chosen.placed(here, channel, account, chosen.nested(values))
    setup = _tried(here, plugin, merged, LinkKey(channel, account))
    if lacks(schema, setup) and not asked.json and os.isatty(0) and os.isatty(2):
        values |= _questions(schema, setup)
        merged = chosen.placed(here, channel, account, chosen.nested(values))
        setup = _tried(here, plugin, merged, LinkKey(channel, account))
    if (wrong := lacks(schema, setup)) and (before is None or wrong != lacks(schema, before)):
        raise UserError(f"nothing is written; {channel}/{account}: {wrong}")
    if plugin.manifest.imports and not asked.no_install:
        importlib.import_module("garra.faces.cli.plugin_packages").install(here, plugin)
    chosen.write(here, merged)
    lacking = packages.needed(plugin)
    if asked.json:
        fault = wrong or lacking or None
        output.say_json({"channel": channel, "accountId": account, "configured": setup.configured, "fault": fault})
    else:
        _told(here, schema, values, setup, was=before is not None, fault=wrong or lacking)
        if plugin.origin == "bundled":
            output.say(f"Set-up, settings and limits of {channel}: docs/channels/{channel}.md")
    return 1 if wrong or lacking else 0


def _tried(here: Place, plugin: Plugin, merged: Mapping[str, Any], key: LinkKey) -> Setup:
    """The account as it would be; packages that are not there are no fault of it."""
    snapshot = Writer(here.paths, here.env).preview(dict(merged)).snapshot
    setup = chosen.one(app.configured([plugin], snapshot, here.env), *key)
    if setup is None:  # the channel's other accounts hide one that has no credential
        schema = plugin.manifest.settings
        (alone,) = accounts.setups(key.channel, {}, schema, accounts.Outside())
        return replace(alone, account=replace(alone.account, id=key.account))
    rules = account_rules(snapshot.config.channels, *key)
    setup = replace(setup, account=replace(setup.account, settings={**rules, **setup.account.settings}))
    return replace(setup, fault="") if setup.fault == packages.needed(plugin) else setup


# ---- what was given


def _credential(here: Place, schema: Mapping[str, Any], asked: argparse.Namespace) -> dict[str, Any]:
    """What the options say of the credential and the name. Raises UserError for what cannot be it."""
    found = {"name": asked.name} if asked.name else {}
    marked = [(key, part) for key, part in accounts.parts(schema) if part.get("secret")]
    if not marked:
        return found
    key, part = marked[0]
    if asked.credential:
        _fits(key, part, asked.credential, "--token")
        return {**found, key: asked.credential}
    if asked.token_file and part.get("file"):
        return {**found, part["file"]: asked.token_file}
    if asked.use_env and part.get("env"):
        _in_environment(here, part["env"])
        return {**found, key: "${" + part["env"] + "}"}
    return found


def _in_environment(here: Place, name: str) -> None:
    written = here.config.get("env")
    spoken = {**(written if isinstance(written, dict) else {}), **here.env}
    if not str(spoken.get(name) or "").strip():
        raise UserError(
            f"nothing is written; {name} is not set here. The gateway reads it from its environment at each start: "
            "set it for both, or give the credential by --token or --token-file"
        )


def _settings(schema: Mapping[str, Any], listed: Sequence[str]) -> dict[str, Any]:
    """`KEY=VALUE` pairs by path; a value that is JSON is read as such. Raises UserError for what does not fit."""
    found: dict[str, Any] = {}
    known = dict(accounts.parts(schema))
    for pair in listed:
        key, mark, text = pair.partition("=")
        if not mark or not key:
            raise UserError(f"--set takes KEY=VALUE, not {pair!r}")
        found[key] = _value(text) if (known.get(key) or {}).get("type") != "string" else text
        if (part := known.get(key)) and part.get("secret"):
            _fits(key, part, text, f"--set {key}")
    plain = chosen.nested(found)
    for fault in (*faults(schema, plain), *accounts.misshapen(schema, plain)):
        raise UserError(f"nothing is written; --set {fault}")
    return found


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _fits(key: str, part: Mapping[str, Any], text: str, option: str) -> None:
    if not re.fullmatch(part.get("pattern", ".*"), text, re.DOTALL):
        raise UserError(f"what {option} gives does not look like its {key}: {part.get('description', '')}")


def _questions(schema: Mapping[str, Any], setup: Setup) -> dict[str, Any]:
    """What a person at a terminal says of the keys that are missing."""
    known = dict(accounts.parts(schema))
    found = {}
    for key in sorted(setup.missing or _login(schema, setup), key=list(known).index):
        part = known[key]
        words = f"{key} ({part['description']}): " if part.get("description") else f"{key}: "
        try:
            secret = part.get("secret")
            text = importlib.import_module("getpass").getpass(words) if secret else input(words)
        except (EOFError, KeyboardInterrupt):
            raise UserError("stopped; nothing is written") from None
        if not text.strip():
            break
        _fits(key, part, text.strip(), "that")
        found[key] = text.strip()
    return found


# ---- what it lacks, and what comes next


def lacks(schema: Mapping[str, Any], setup: Setup) -> str:
    """Why an account cannot start, with the options that mend it, in one line; empty when it can."""
    known = dict(accounts.parts(schema))
    if setup.missing:
        return "; ".join(_wanted(schema, key, known[key]) for key in setup.missing)
    if setup.fault and (ways := _ways(schema, setup)):
        return f"no login: give {ways}"
    return setup.fault or ("" if setup.configured else "it has no credential")


def _wanted(schema: Mapping[str, Any], key: str, part: Mapping[str, Any]) -> str:
    first = next((name for name, each in accounts.parts(schema) if each.get("secret")), "")
    about = f" ({part['description']})" if part.get("description") else ""
    if key != first:
        return f"its {key} is missing{about}: give it by --set {key}=…"
    env = f" ({part['env']})" if part.get("env") else ""
    return f"its {key} is missing{about}: give it by --token TEXT, --token-file FILE or --use-env{env}"


def _login(schema: Mapping[str, Any], setup: Setup) -> list[str]:
    """What is left of the set of keys that is most nearly there; empty where a login is none of its faults."""
    if not setup.fault.startswith("no login"):
        return []
    there = setup.account.settings
    lacking = [([key for key in way if not there.get(key)], len(way)) for way in schema.get("logins") or ()]
    return min(lacking, key=lambda each: (len(each[0]), -each[1]), default=([], 0))[0]


def _ways(schema: Mapping[str, Any], setup: Setup) -> str:
    """The sets of keys of which it has none, as options."""
    if not setup.fault.startswith("no login"):
        return ""
    return ", or ".join(" ".join(f"--set {key}=…" for key in way) for way in schema.get("logins") or ())


def unknown(schema: Mapping[str, Any], values: Mapping[str, Any]) -> list[str]:
    """A line for each key that neither the channel nor the host knows: most often a slip of the pen."""
    names = {*(schema.get("properties") or {}), *HOST_KEYS, "enabled", "name"}
    found = []
    for key in chosen.nested(values):
        if key not in names:
            near = difflib.get_close_matches(key, sorted(names), n=1)
            found.append(f"nothing here reads {key}{f'; did you mean {near[0]}?' if near else ''}")
    return found


def _told(
    here: Place, schema: Mapping[str, Any], values: Mapping[str, Any], setup: Setup, *, was: bool, fault: str
) -> None:
    done = "was there already and is changed; what you gave replaces what it had" if was else "is added"
    output.say(f"{setup.key} {done}.")
    for line in (*unknown(schema, values), *accounts.advice(schema, setup.account.settings, names.addresses)):
        output.note(f"! {line}")
    if fault:
        output.note(f"! it cannot start: {fault}")
        return
    if not setup.enabled:
        output.note(f"! the whole channel is off: {here.command} config set channels.{setup.channel}.enabled true")
    if here.holder:
        output.say(f"The running gateway takes it up by itself: {here.command} channels status")
    else:
        output.say(f"No gateway runs here; start it: {here.command} gateway run")
    if not was and (setup.account.settings.get("dmPolicy") or "pairing") == "pairing":
        output.say("Then write to it: it answers with a code, and this lets you in:")
        output.say(f"  {here.command} pairing approve {setup.channel} CODE")
