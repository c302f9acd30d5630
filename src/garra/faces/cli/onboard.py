"""`garra onboard`: the first set-up; asks a few questions, or none with --non-interactive. It keeps what is set."""

from __future__ import annotations

import argparse
import importlib
import os
from collections.abc import Sequence
from typing import Any

from garra.core.errors import GarraError, UserError
from garra.faces.cli import output, parsing, place
from garra.faces.cli.place import Place
from garra.faces.cli.status import primary_model

APIS = {"openai": "openai-completions", "anthropic": "anthropic-messages"}
IGNORED = ("accept-risk", "skip-channels", "skip-skills", "skip-daemon", "skip-health", "skip-ui", "skip-search",
           "skip-hooks", "skip-bootstrap", "no-install-daemon")  # fmt: skip
EXAMPLE = "anthropic/claude-sonnet-5"
TOKEN_BYTES = 24
CLOSED = 0o700


def run(arguments: Sequence[str]) -> int:
    asked = _parser().parse_args(list(arguments))
    here = place.here()
    if not asked.non_interactive:
        if not (os.isatty(0) and os.isatty(1)):
            raise UserError("onboard asks questions: run it in a terminal, or with --non-interactive")
        ask(asked, here)
    report = apply(here, asked)
    if asked.json:
        output.say_json(report)
    else:
        output.say(words(report, here))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = parsing.with_json(parsing.parser("onboard", "Set Garra up: a model, the gateway, the folders."))
    parser.add_argument("--non-interactive", action="store_true", help="ask nothing; take what the options say")
    parser.add_argument(
        "--custom-base-url", default="", metavar="URL", help="a model server, such as http://127.0.0.1:11434/v1"
    )
    parser.add_argument(
        "--custom-api-key", default="", metavar="KEY", help="its key; ${NAME} takes it from the environment"
    )
    parser.add_argument("--custom-model-id", default="", metavar="ID", help="the model on it that answers")
    parser.add_argument("--custom-provider-id", default="custom", metavar="ID", help="what to call the server (custom)")
    parser.add_argument("--custom-compatibility", choices=tuple(APIS), default="openai", help="its dialect (openai)")
    parser.add_argument("--model", default="", metavar="REF", help="a known model, provider/model")
    parser.add_argument("--workspace", default="", metavar="DIR", help="the agent's working folder")
    parser.add_argument("--gateway-port", type=int, metavar="N", help="the gateway's port (18789)")
    parser.add_argument(
        "--gateway-bind", choices=("loopback", "lan", "auto", "custom", "tailnet"), help="who reaches it"
    )
    parser.add_argument("--gateway-token", default="", help="its shared token (a new random one)")
    parser.add_argument("--gateway-auth", choices=("token", "password"), help=argparse.SUPPRESS)
    parser.add_argument("--gateway-password", default="", help=argparse.SUPPRESS)
    for name in ("mode", "auth-choice", "flow", "secret-input-mode"):
        parser.add_argument(f"--{name}", default="", help=argparse.SUPPRESS)
    parser.set_defaults(pick=False)
    for name in IGNORED:
        parser.add_argument(f"--{name}", action="store_true", help=argparse.SUPPRESS)
    return parser


def ask(asked: argparse.Namespace, here: Place) -> None:
    """Ask a person for what the options did not say."""
    output.say(output.painted("Garra, first set-up", "strong"))
    output.say(f"Everything is kept in {here.paths.state}. Enter takes what stands in brackets.\n")
    if not asked.custom_base_url and not asked.model:
        _ask_model(asked, here)
    if not asked.workspace and not (here.config.get("agents") or {}).get("defaults"):
        asked.workspace = _question("Working folder", str(here.paths.state / "workspace"))


def _ask_model(asked: argparse.Namespace, here: Place) -> None:
    present = primary_model(here.config)
    output.say("Which model answers?")
    output.say("  1  let Garra pick: a key in the environment, a local server, else the small one in the box")
    output.say("  2  a model server of your own (OpenAI's dialect)")
    output.say(f"  3  a known model, by its name, such as {EXAMPLE} ({here.command} models list --all)")
    if present:
        output.say(f"  4  {present}, as now")
    choices = ("1", "2", "3", *(["4"] if present else []))
    choice = ""
    while choice not in choices:
        choice = _question(f"1 to {len(choices)}", choices[-1] if present else "1")
    if choice == "1":
        asked.pick = True
    elif choice == "2":
        asked.custom_base_url = _question("Address", "http://127.0.0.1:11434/v1")
        asked.custom_api_key = _secret("Key (empty when it needs none)")
        asked.custom_model_id = _question("Model", "")
    while choice == "3" and not asked.model:
        asked.model = _known(_question("provider/model", ""), here)


def _known(name: str, here: Place) -> str:
    """A model's name when there is such a one, else nothing, and why not is said."""
    loaded = importlib.import_module("garra.config.load").load(here.paths, here.env)
    try:
        return _model(here, loaded, name) if name else ""
    except GarraError as fault:
        output.say(output.painted(fault.message, "bad"))
        return ""


def _model(here: Place, loaded: Any, name: str) -> str:
    """The model that is meant; a doubt about it is said. Raises NotFound."""
    ref, doubt = importlib.import_module("garra.faces.cli.models_choose").meant(here, loaded, name)
    if doubt:
        output.note(doubt)
    return str(ref)


def _question(words: str, default: str) -> str:
    try:
        return input(f"{words} [{default}]: " if default else f"{words}: ").strip() or default
    except EOFError as fault:
        raise UserError("stopped; nothing was changed") from fault


def _secret(words: str) -> str:
    getpass = importlib.import_module("getpass")
    return str(getpass.getpass(f"{words}: ")).strip()


def apply(here: Place, asked: argparse.Namespace) -> dict[str, Any]:
    """Write what was asked for into the configuration, and make the folders. Raises UserError for what is not valid."""
    loaded = importlib.import_module("garra.config.load").load(here.paths, here.env)
    if not loaded.valid:
        raise UserError(f"{here.paths.config_file} is not valid; mend it first: garra doctor")
    if asked.model and not asked.custom_base_url:
        asked.model = _model(here, loaded, asked.model)
    ground = importlib.import_module("garra.runs.ground")
    atomic = importlib.import_module("garra.io.files.atomic")
    with atomic.writing(here.paths.state):
        atomic.folder(here.paths.state)
        here.paths.state.chmod(CLOSED)
    changes = wanted(asked, loaded.resolved)
    writer = importlib.import_module("garra.config.write").Writer(here.paths, here.env)
    written = writer.patch(changes) if changes else loaded
    ground.lay(here.paths, here.env)
    clock = importlib.import_module("garra.io.clock").SystemClock()
    workspace = ground.furnish(here.paths, written.config, clock)
    return {
        "ok": True,
        "config": str(here.paths.config_file),
        "stateDir": str(here.paths.state),
        "workspace": str(workspace),
        "model": written.config.agents.defaults.model.primary or None,
        "gateway": {"port": written.config.gateway.port, "bind": written.config.gateway.bind},
    }


def wanted(asked: argparse.Namespace, present: dict[str, Any]) -> dict[str, Any]:
    """What to merge into the configuration: what was asked, and what must be there and is not."""
    changes: dict[str, Any] = {"gateway": _gateway(asked, present.get("gateway") or {})}
    defaults: dict[str, Any] = {}
    primary = asked.model
    if asked.custom_base_url:
        changes["models"] = {"providers": {asked.custom_provider_id: _provider(asked)}}
        primary = f"{asked.custom_provider_id}/{asked.custom_model_id}" if asked.custom_model_id else primary
    elif asked.custom_api_key or asked.custom_model_id:
        raise UserError("--custom-api-key and --custom-model-id need --custom-base-url")
    if primary or asked.pick:
        defaults["model"] = _primary(primary, present)
    if asked.workspace:
        defaults["workspace"] = asked.workspace
    return {**changes, "agents": {"defaults": defaults}} if defaults else changes


def _primary(primary: str, present: dict[str, Any]) -> Any:
    """What `agents.defaults.model` is to be merged with; without a model the one that is set is taken out."""
    written = ((present.get("agents") or {}).get("defaults") or {}).get("model")
    return {"primary": primary or None} if primary or isinstance(written, dict) else None


def _provider(asked: argparse.Namespace) -> dict[str, Any]:
    url = asked.custom_base_url.rstrip("/")
    if not url.startswith(("http://", "https://")):
        raise UserError(f"--custom-base-url: {url} is no address; it begins with http:// or https://")
    model = asked.custom_model_id
    provider: dict[str, Any] = {"api": APIS[asked.custom_compatibility], "baseUrl": url}
    if asked.custom_api_key:
        provider["apiKey"] = asked.custom_api_key
    provider["models"] = [{"id": model, "name": model}] if model else []
    return provider


def _gateway(asked: argparse.Namespace, present: dict[str, Any]) -> dict[str, Any]:
    auth = present.get("auth") or {}
    gateway: dict[str, Any] = {} if present.get("mode") else {"mode": "local"}
    if asked.gateway_port:
        gateway["port"] = asked.gateway_port
    if asked.gateway_bind:
        gateway["bind"] = asked.gateway_bind
    if asked.gateway_password:
        gateway["auth"] = {"mode": "password", "password": asked.gateway_password}
    elif asked.gateway_token or not (auth.get("token") or auth.get("password")):
        gateway["auth"] = {"mode": "token", "token": asked.gateway_token or os.urandom(TOKEN_BYTES).hex()}
    return gateway


def words(report: dict[str, Any], here: Place) -> str:
    model = report["model"] or "none set: the first turn picks one and says which"
    return "\n".join(
        (
            output.painted("Set up.", "accent"),
            f"Config     {report['config']}",
            f"Workspace  {report['workspace']}",
            f"Model      {model}",
            "",
            f"Talk to it:        {here.command}",
            f"Keep it running:   {here.command} gateway run",
            f"Look it over:      {here.command} doctor",
        )
    )
