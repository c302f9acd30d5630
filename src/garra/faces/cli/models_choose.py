"""`garra models set` and `set-image`."""

from __future__ import annotations

from collections.abc import Sequence

from garra.config.load import Snapshot, load
from garra.config.write import Writer
from garra.core import dotted
from garra.core.errors import RunFailed, UserError
from garra.domains.models import keys
from garra.domains.models.registry import Models
from garra.faces.cli import models_here, output, taken
from garra.faces.cli.parsing import parser, with_json
from garra.faces.cli.place import Place
from garra.sdk.model import Model

NOW = "answers from now on."


def run(step: str, words: Sequence[str], place: Place) -> int:
    what = "answers when nothing else is said" if step == "set" else "looks at pictures"
    found = with_json(parser(f"models {step}", f"Choose the model that {what}."))
    found.add_argument("model", help="provider/model, or an alias")
    asked = found.parse_args(words)
    snapshot = load(place.paths, place.env)
    models = models_here.registry(snapshot, place)
    model = models.resolve(named(asked.model))
    where = "agents.defaults.model" if step == "set" else "agents.defaults.imageModel"
    since = since_when(place, choose(place, snapshot, model.ref, where))
    listed = model.id in models.entries()[model.provider].listed() or model.id.endswith(".gguf")
    lacking = _lacking(models, model, snapshot)
    if asked.json:
        output.say_json({"ok": True, "model": model.ref, "known": listed, "problem": lacking or None})
        return 0
    if doubt := doubted(models, model):
        output.note(doubt)
    if lacking:
        output.note(lacking)
        output.say(f"{model.ref} is chosen; it answers once there is a key.")
    elif step == "set-image":
        output.say(f"{model.ref} is chosen for pictures.")
    else:
        output.say(f"{model.ref} {since if listed or since != NOW else 'is chosen.'}")
    return 0


def _lacking(models: Models, model: Model, snapshot: Snapshot) -> str:
    """Why it could not answer."""
    try:
        keys.found(models.entries()[model.provider], snapshot.env)
    except RunFailed as fault:
        return fault.message
    return ""


def meant(place: Place, snapshot: Snapshot, text: str) -> tuple[str, str]:
    """The model that `text` names, `provider/model`, and a line of doubt about it. Raises NotFound for none."""
    models = models_here.registry(snapshot, place)
    model = models.resolve(named(text))
    return model.ref, doubted(models, model)


def named(text: str) -> str:
    """A name that says something: an empty one would mean the model that answers now. Raises UserError."""
    if not text.strip():
        raise UserError("name a model as provider/model; see `garra models list`")
    return text


def doubted(models: Models, model: Model) -> str:
    """What is to be said of a name that is nowhere listed; nothing where no list is known."""
    names = models.entries()[model.provider].listed()
    if not names or model.id in names or model.id.endswith(".gguf"):
        return ""
    return f"{model.id} is not in the catalog of {model.provider}; if it is misspelt, its calls will fail."


def since_when(place: Place, written: Snapshot) -> str:
    """From when on it answers; a gateway that runs is given the time to take it up."""
    if taken.up(place, written.hash):
        return NOW
    when = "when it is restarted" if written.config.gateway.reload.mode == "off" else "as soon as it has read it"
    return f"is chosen; the gateway that runs takes it up {when}."


def choose(place: Place, snapshot: Snapshot, ref: str, where: str = "agents.defaults.model") -> Snapshot:
    """Set the first model there; one that is written as bare text stays one."""
    value = models_here.told(snapshot, where)
    path = dotted.parse(where if isinstance(value, str) else f"{where}.primary")
    return Writer(place.paths, place.env).set(path, ref)
