"""The commands: what each is called, what it does, and which module runs it. A module is imported only to be run.

Each module has `run(arguments: Sequence[str]) -> int`, where `arguments` follow the command's name; a name of two
words wins over a name of one.
"""

from __future__ import annotations

from typing import NamedTuple


class Command(NamedTuple):
    """One row. `words` are its subcommands and options, for completion; `aliases` are other names for it."""

    name: str
    summary: str
    module: str
    words: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()


COMMANDS = (
    Command("chat", "talk to an agent in this terminal", "garra.faces.tui.command",
            ("--session", "--agent", "--model", "--thinking", "--local", "--url", "--token"), ("tui",)),
    Command("agent", "one message to an agent, one answer (--json, --local)", "garra.faces.cli.agent",
            ("--agent", "--session-key", "--model", "--message", "--message-file", "--thinking", "--timeout", "--json",
             "--local")),
    Command("agent exec", "run one task without a gateway, for scripts", "garra.faces.cli.agent_exec",
            ("--agent", "--model", "--timeout", "--json")),
    Command("gateway", "the resident process: run it, ask it", "garra.faces.cli.gateway"),
    Command("gateway run", "run the gateway in the foreground", "garra.faces.cli.gateway_run",
            ("--port", "--bind", "--token", "--verbose")),
    Command("gateway status", "is a gateway running here, does it answer, is it a service",
            "garra.faces.cli.service:status", ("--json", "--url", "--token")),
    Command("gateway install", "make it a service of yours, which starts with you",
            "garra.faces.cli.service:install", ("--force", "--json")),
    Command("gateway start", "start the service", "garra.faces.cli.service:start", ("--json",)),
    Command("gateway stop", "stop the service", "garra.faces.cli.service:stop", ("--json",)),
    Command("gateway restart", "begin anew in place; nobody who connects is refused",
            "garra.faces.cli.service:restart", ("--safe", "--force", "--json")),
    Command("gateway uninstall", "remove the service; state and configuration stay",
            "garra.faces.cli.service:uninstall", ("--json",)),
    Command("gateway probe", "try to reach a gateway and say how it went", "garra.faces.cli.gateway_probe",
            ("--json", "--url", "--token")),
    Command("gateway call", "call one method of the gateway", "garra.faces.cli.gateway_call",
            ("--params", "--json", "--url", "--token", "--timeout")),
    Command("gateway schema", "print the JSON Schema of the wire protocol", "garra.faces.cli.gateway_schema"),
    Command("daemon", "the service, by its older name", "garra.faces.cli.service:daemon",
            ("install", "status", "start", "stop", "restart", "uninstall")),
    Command("status", "this installation at a glance", "garra.faces.cli.status", ("--json", "--all")),
    Command("usage", "tokens and money: by day, conversation, sender, agent, model, job", "garra.faces.cli.usage",
            ("--by", "--days", "--json")),
    Command("stop", "stop all work of the gateway (--all), and start none (--pause)", "garra.faces.cli.stop",
            ("--all", "--pause", "--json")),
    Command("resume", "let a paused gateway work again", "garra.faces.cli.resume", ("--json",)),
    Command("health", "the gateway's own view of its health", "garra.faces.cli.health", ("--json",)),
    Command("dashboard", "the address of the web page, which lets a browser in", "garra.faces.cli.dashboard",
            ("--json",)),
    Command("logs", "the gateway's log", "garra.faces.cli.logs", ("--follow", "--limit", "--json")),
    Command("onboard", "first set-up: model, gateway, folders", "garra.faces.cli.onboard",
            ("--non-interactive", "--custom-base-url", "--custom-api-key", "--custom-model-id", "--json"), ("setup",)),
    Command("config", "read and change the configuration", "garra.faces.cli.config",
            ("get", "set", "unset", "validate", "schema", "restore")),
    Command("models", "which models there are and which one answers", "garra.faces.cli.models",
            ("list", "status", "set", "set-image", "aliases", "fallbacks", "image-fallbacks", "auth", "probe",
             "refresh", "scan", "install-local")),
    Command("sessions", "list, read, export and delete conversations", "garra.faces.cli.sessions",
            ("list", "history", "export", "delete")),
    Command("memory", "what an agent remembers: search it, see its index", "garra.faces.cli.memory",
            ("search", "status", "index", "reindex", "--agent", "--deep", "--force", "--json", "--max-results")),
    Command("skills", "what an agent can read up on: list, install, check, update, remove", "garra.faces.cli.skills",
            ("list", "info", "check", "install", "update", "remove", "--agent", "--json", "--yes", "--as", "--path",
             "--sha256", "--force", "--all")),
    Command("tools", "which tools an agent has in a session, and why", "garra.faces.cli.tools",
            ("list", "explain", "--session", "--agent", "--sender", "--json")),
    Command("channels", "chat accounts and their links", "garra.faces.cli.channels",
            ("list", "status", "add", "install", "remove", "start", "stop")),
    Command("trace", "where the time of one turn went, step by step", "garra.faces.cli.trace",
            ("--json", "--session", "--limit", "--url", "--token")),
    Command("messages", "what came in and went out: list, show, retry, drop", "garra.faces.cli.messages",
            ("list", "show", "retry", "drop")),
    Command("message", "send a message to a chat", "garra.faces.cli.message",
            ("send", "--to", "--message", "--media", "--channel", "--account", "--thread", "--dry-run", "--json")),
    Command("devices", "who may connect: list, approve, reject, revoke, rotate", "garra.faces.cli.devices",
            ("list", "approve", "reject", "revoke", "rotate")),
    Command("pairing", "strangers who wrote to a chat account: let one in", "garra.faces.cli.pairing",
            ("list", "approve", "dismiss", "revoke")),
    Command("approvals", "what agents ask: see it, answer it, say what may run unasked", "garra.faces.cli.approvals",
            ("list", "show", "approve", "deny", "get", "set", "history", "grants", "revoke", "allowlist"),
            ("exec-approvals",)),
    Command("sandbox", "how an agent's commands are shut in: explain, list, recreate", "garra.faces.cli.sandbox",
            ("explain", "list", "recreate", "--session", "--agent", "--json")),
    Command("secrets", "keys and passwords in a store of their own; find those that still stand in files",
            "garra.faces.cli.secrets",
            ("list", "set", "get", "rm", "import", "audit", "migrate", "reload", "--json", "--dry-run")),
    Command("migrate", "take over from OpenClaw, Hermes, nanobot or Claude Code", "garra.faces.cli.migrate",
            ("list", "plan", "apply", "openclaw", "hermes", "nanobot", "claude", "--from", "--dry-run",
             "--include-secrets", "--overwrite", "--item", "--yes", "--json")),
    Command("forget", "remove what is kept of one person", "garra.faces.cli.forget", ("--dry-run", "--yes", "--json")),
    Command("doctor", "find what is wrong, say how to mend it (--fix)", "garra.faces.cli.doctor",
            ("--fix", "--json")),
    Command("security", "where this installation stands open: audit (--deep, --fix)", "garra.faces.cli.security",
            ("audit", "--deep", "--fix", "--json")),
    Command("repair", "mend a broken configuration, step by step", "garra.faces.cli.repair"),
    Command("plugins", "what is installed and on; install what one needs; write one", "garra.faces.cli.plugins",
            ("list", "install", "new")),
    Command("update", "another version of Garra, tried first and taken back if it fails", "garra.faces.cli.update",
            ("status", "rollback", "--wheel", "--to", "--dry-run", "--yes", "--json")),
    Command("backup", "pack the state into one file, check it, put it back", "garra.faces.cli.backup",
            ("create", "verify", "restore", "list", "--json")),
    Command("reset", "remove configuration or state, keep the program", "garra.faces.cli.remove:reset",
            ("--scope", "--dry-run", "--yes", "--json")),
    Command("uninstall", "remove the service, the state, the workspaces", "garra.faces.cli.remove:uninstall",
            ("--service", "--state", "--workspace", "--all", "--dry-run", "--yes", "--json")),
    Command("shim", "write an `openclaw` command that runs Garra", "garra.faces.cli.shim", ("--dir", "--force")),
    Command("completion", "print completion for bash, zsh or fish", "garra.faces.cli.completion",
            ("bash", "zsh", "fish")),
)  # fmt: skip


GLOBAL = """\
Before the command:
  --profile NAME     another installation of the same user, with its own folder
  --dev              the same as --profile dev
  --state-dir DIR    keep everything below this folder
  --log-level LEVEL  debug, info, warn or error
  --no-color         no colours
  --version, --help
"""


def overview(more: tuple[Command, ...] = ()) -> str:
    """What bare `--help` prints; `more` are commands that plugins bring."""
    rows = [row for row in (*COMMANDS, *more) if " " not in row.name]
    width = max(len(row.name) for row in rows) + 2
    lines = "".join(f"  {row.name:<{width}}{row.summary}\n" for row in rows)
    return (
        "Garra: an always-on personal AI agent.\n\n"
        "usage: garra                        open the chat, or answer what comes on standard input\n"
        "       garra [options] COMMAND ...\n\n"
        f"Commands (garra COMMAND --help says more):\n{lines}\n{GLOBAL}"
    )


def find(arguments: list[str]) -> tuple[Command, list[str]] | None:
    """The command that `arguments` begin with, and what follows its name. None when there is no such command."""
    for words in (2, 1):
        name = " ".join(arguments[:words])
        if len(arguments) >= words and (command := named(name)):
            return command, arguments[words:]
    return None


def named(name: str) -> Command | None:
    return next((row for row in COMMANDS if row.name == name or name in row.aliases), None)


def below(name: str) -> list[Command]:
    """The commands whose name begins with `name` and one more word."""
    return [row for row in COMMANDS if row.name.startswith(f"{name} ")]
