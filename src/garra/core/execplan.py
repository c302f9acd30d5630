"""What becomes of a command before it is run: where it runs, for how long, with which environment."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, Final, Literal

from garra.core.errors import ToolFailed
from garra.core.execrules import Policy
from garra.core.patterns import later
from garra.core.secret import Secret
from garra.core.value import frozen

Host = Literal["auto", "sandbox", "gateway", "node"]
YIELD_MS = (10, 120_000)
MAX_COMMAND = 100_000
"""Bytes: the kernel takes no more than 131,072 in one argument."""
MAX_ENVIRONMENT = 32_768
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
NO_ELEVATED = "elevated is not enabled here. Leave it out."


@frozen
class Settings:
    """What the owner set under `tools.exec`.

    `timeout_s` 0 means no limit. `network` opens the network inside the sandbox. `path` leads the search path of every
    command. `notify` tells the session when a command in the background ended.

    `guarded` are the files and folders (these end in /) of the workspace that a command in a sandbox cannot change:
    set for a turn that has read text from outside. `asks`: then no command of it counts as shut in. `why` says to the
    person who is asked for the others what that text was, and `covers` names what his lasting yes holds for. `listed`:
    what the allowlist lets through runs unasked all the same.

    `policy` is what the configuration says of security and of asking. `safe_bins` are the filters that need no entry
    (None: the usual ones), `safe_folders` where they may lie besides, `safe_profiles` those of the owner's own, as they
    stand in the configuration. `barred` says why this turn may not leave the sandbox by `elevated`; empty where it may.
    `lent` are secrets for single programs, by program and variable. `seen` gives further folders that a command in a
    sandbox can read, at their own paths.
    """

    host: Host = "auto"
    timeout_s: float = 1_800.0
    yield_ms: int = 10_000
    network: bool = False
    notify: bool = True
    path: tuple[str, ...] = ()
    guarded: tuple[str, ...] = ()
    asks: bool = False
    why: tuple[str, ...] = ()
    covers: str = ""
    listed: bool = False
    policy: Policy = Policy()
    safe_bins: tuple[str, ...] | None = None
    safe_folders: tuple[str, ...] = ()
    safe_profiles: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    barred: str = NO_ELEVATED
    lent: Mapping[str, Mapping[str, Secret]] = field(default_factory=dict)
    seen: Callable[[], tuple[str, ...]] = tuple


@frozen
class InSandbox:
    """It runs shut in."""


@frozen
class OnHost:
    """It runs on the machine, because the owner said so."""


@frozen
class AskOwner:
    """Nothing can shut it in: the person at the terminal may let commands run on the machine. `reason` is shown."""

    reason: str


@frozen
class Refused:
    """It does not run. `reason` is what the model reads."""

    reason: str


Place = InSandbox | OnHost | AskOwner | Refused

NO_GATEWAY = "host=gateway is the owner's to allow: tools.exec.host in the configuration. Leave host out."
NO_NODE = "host=node: no node is connected that runs commands."


def place(
    asked: Host,
    configured: Host,
    *,
    elevated: bool,
    missing: str | None,
    interactive: bool,
    barred: str = NO_ELEVATED,
) -> Place:
    """Where a command runs.

    `asked` is the call's word and never widens `configured`, the owner's. `missing` says why no sandbox can start,
    with the remedy; None when one can. `interactive` is true where the owner sits at a terminal. `elevated` asks for
    the machine itself; `barred` says why that may not be, and is empty where it may.
    """
    if "node" in {asked, configured}:
        return Refused(NO_NODE)
    if elevated:
        return Refused(barred) if barred else OnHost()
    if configured == "gateway" and asked != "sandbox":
        return OnHost()
    if asked == "gateway":
        return Refused(NO_GATEWAY)
    if missing is None:
        return InSandbox()
    if interactive and asked == configured == "auto":
        return AskOwner(missing)
    return Refused(f"No command was run: {missing}")


def window_ms(asked: int | None, default: int, *, background: bool) -> int:
    """How long to wait before a command goes to the background, in milliseconds; 0 when it is to start there."""
    if background:
        return 0
    low, high = YIELD_MS
    return min(max(default if asked is None else asked, low), high)


_NAME = later(r"^[A-Za-z_][A-Za-z0-9_]*$")
_LOADERS = ("LD_", "DYLD_", "PYTHON", "BASH_FUNC_", "GIT_CONFIG", "GARRA_", "OPENCLAW_", "npm_config_", "NPM_CONFIG_")
_STEERING = frozenset(
    {
        "PATH", "HOME", "SHELL", "IFS", "ENV", "BASH_ENV", "SHELLOPTS", "BASHOPTS", "PS4", "PROMPT_COMMAND", "CDPATH",
        "GLOBIGNORE", "TMPDIR", "NODE_OPTIONS", "NODE_PATH", "NODE_EXTRA_CA_CERTS", "PERL5LIB", "PERL5OPT", "PERLLIB",
        "RUBYOPT", "RUBYLIB", "LUA_PATH", "LUA_CPATH", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS",
        "CLASSPATH", "GCONV_PATH", "LOCPATH", "NLSPATH", "HOSTALIASES", "RES_OPTIONS", "GIT_SSH", "GIT_SSH_COMMAND",
        "GIT_EXTERNAL_DIFF", "GIT_PAGER", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "GIT_ASKPASS", "GIT_EXEC_PATH",
        "GIT_PROXY_COMMAND", "GIT_TEMPLATE_DIR", "GIT_DIR", "GIT_WORK_TREE", "SSH_ASKPASS", "SUDO_ASKPASS", "PAGER",
        "MANPAGER", "EDITOR", "VISUAL", "BROWSER", "LESSOPEN", "LESSCLOSE", "MAKEFLAGS", "CC", "CXX", "RUSTC_WRAPPER",
        "GOFLAGS", "GLIBC_TUNABLES", "MALLOC_CHECK_", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY",
        "SSL_CERT_FILE", "SSL_CERT_DIR", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE",
    }
)  # fmt: skip


def check_environment(env: Mapping[str, str]) -> None:
    """Raises ToolFailed for a variable that would decide which program or library runs, or is malformed."""
    for name, value in env.items():
        if not _NAME.match(name):
            raise ToolFailed(f"env: {name!r} is no variable name")
        if name.startswith(_LOADERS) or name in _STEERING or name.upper() in _STEERING:
            raise ToolFailed(f"env: {name} may not be set: it steers which program or library runs")
        if "\0" in value:
            raise ToolFailed(f"env: {name} holds a NUL character")
    size = sum(len(name) + len(value.encode(errors="replace")) for name, value in env.items())
    if size > MAX_ENVIRONMENT:
        raise ToolFailed(f"env: {size} bytes, more than {MAX_ENVIRONMENT}")


_ANSWERS: Final = later(
    r"""(?:^|[;&|(`{\n]|\s-\w{0,5}c\s{1,9}['"]?)\s{0,99}/(?:approve|deny)(?![\w./-])
      | \b(?:garra|openclaw|clawdbot)(?:\.mjs)?['"]?\s(?:[^;&|\n]{0,200}\s)?['"]?
        (?:approvals|exec-policy|(?:pairing|devices)['"]?\s{1,9}['"]?approve)\b""",
    re.X,
)
NOT_YOURS = (
    "No command was run: approvals are given by people. Show the person the `Reply with:` line that you were told, "
    "word for word; he answers in the chat, in a client, or at his own terminal."
)


def filled(said: Policy, *, shut_in: bool) -> Policy:
    """A policy with nothing left open. Where nothing was said, all runs that is shut in (`shut_in`, or where the person
    at the terminal has just said that commands may run there); on the machine itself what is not allowed is asked.
    """
    security = said.security or ("full" if shut_in else "allowlist")
    ask = said.ask or ("off" if security == "full" else "on-miss")
    return Policy(security, ask, said.fallback, said.allowlist)


def check_command(command: str) -> None:
    """Raises ToolFailed for what cannot be handed to a shell as one argument, and for what is a person's to say."""
    if not command.strip():
        raise ToolFailed("command: it is empty")
    if "\0" in command:
        raise ToolFailed("command: it holds a NUL character")
    if _ANSWERS.search(command):
        raise ToolFailed(NOT_YOURS, details={"kind": "refused"})
    try:
        size = len(command.encode())
    except UnicodeEncodeError:
        raise ToolFailed("command: it holds half a character (a lone surrogate)") from None
    if size > MAX_COMMAND:
        raise ToolFailed(f"command: {size} bytes, more than {MAX_COMMAND}. Write it to a file and run that.")


def environment(home: str, extra: Mapping[str, str], lead: tuple[str, ...] = (), *, terminal: bool) -> dict[str, str]:
    """The whole environment of a command. Nothing of ours is copied: it is built."""
    return {
        "PATH": ":".join((*lead, PATH)),
        "HOME": home,
        "USER": "agent",
        "LOGNAME": "agent",
        "SHELL": "/bin/bash",
        "LANG": "C.UTF-8",
        "TERM": "xterm-256color" if terminal else "dumb",
        "PAGER": "cat",
        "GIT_PAGER": "cat",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GARRA_SHELL": "exec",
        "OPENCLAW_SHELL": "exec",
        **extra,
    }
