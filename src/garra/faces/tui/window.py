"""Puts the chat together: the screen, and behind it the gateway that was found or one in this process."""

from __future__ import annotations

import argparse
import importlib
from contextlib import closing

from garra import app
from garra.client import called, target
from garra.client.target import Target, Wanted
from garra.config.paths import Paths
from garra.config.peek import peek
from garra.core.errors import Unavailable
from garra.faces.tui.backend import Backend, Port
from garra.faces.tui.chat import Chat, Opening
from garra.faces.tui.remote import Remote
from garra.faces.tui.theme import fitting
from garra.io import log as logs
from garra.io.clock import SystemClock
from garra.io.env import Environment
from garra.io.files import atomic


def show(paths: Paths, env: Environment, asked: argparse.Namespace, wanted: Wanted | None) -> int:
    """Open the chat and give the exit code when it is left. `wanted` None: the agent lives in this process."""
    port = inside(paths, env) if wanted is None else outside(paths, env, wanted)
    garra = called.command(env, paths.profile)
    opening = Opening(
        session_key=asked.session,
        agent_id=asked.agent,
        model=asked.model,
        thinking=asked.thinking,
        message=asked.message,
        notices=first_words(paths, garra) if wanted is None else (),
        history=max(1, asked.history_limit),
        theme=fitting(env.get("GARRA_THEME", ""), env.get("COLORFGBG", "")),
        command=garra,
    )
    screen = Chat(Backend(port), opening, SystemClock())
    with closing(logs.setup(paths, "info")):
        screen.run()
    return screen.return_code or 0


def first_words(paths: Paths, garra: str) -> tuple[str, ...]:
    """What a person should know who talks to an agent in this window; `garra` is how they call this program."""
    alone = f"No gateway runs here, so the agent lives in this window. To keep it running: {garra} gateway run"
    if settled(paths):
        return (alone,)
    new = f"Nothing is set up yet: Garra picks the model it finds and says which. To choose yourself: {garra} onboard"
    return (new, alone)


def settled(paths: Paths) -> bool:
    """Whether anything is configured: a first run leaves a file that says nothing."""
    try:
        return atomic.read(paths.config_file).strip() not in ("", "{}")
    except FileNotFoundError:
        return False
    except Unavailable:
        return True


def outside(paths: Paths, env: Environment, wanted: Wanted) -> Port:
    """A gateway that runs elsewhere; it is looked for anew whenever the connection is lost."""

    def locate() -> Target:
        return target.find(paths, env, peek(paths, env), wanted)

    return Remote(locate, paths.state / "identity")


def inside(paths: Paths, env: Environment) -> Port:
    """A gateway in this process."""
    embedded = importlib.import_module("garra.faces.tui.embedded")  # the whole house: only where the agent lives here
    port: Port = embedded.Embedded(lambda consent, tell: app.embedded(paths, env, consent=consent, tell=tell))
    return port
