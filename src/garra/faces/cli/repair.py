"""`garra repair`: a broken configuration is mended step by step, in a plain dialog that needs no model.

Bare `garra` opens it too, when it finds such a configuration. What a change of the text would come to is judged by
loading it; the file that was broken is kept beside.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Sequence
from typing import Literal

from garra.config import troubles, view
from garra.config.load import Snapshot, last_good, load, snapshot_of
from garra.config.source import interpret
from garra.config.write import Writer
from garra.core import repair
from garra.core.dotted import show
from garra.core.errors import GarraError
from garra.core.redact import cleaner, hidden
from garra.core.repair import Choice, Facts, Trouble
from garra.faces.cli import output, parsing
from garra.faces.cli.place import Place, here
from garra.io.process import foreground

End = Literal["mended", "go-on", "quit"]
NO_CHANGES = 'Nothing was changed in the file. "garra repair" opens this again.'
CONTEXT = 12_000
ASKED = """\
My configuration file {file} is not valid; you run on the last good one. Say in a few sentences what is wrong and what
I should write instead. Change no file.

{faults}

The file, with the secrets blotted out:

{text}
"""


def run(arguments: Sequence[str]) -> int:
    parsing.parser("repair", "Mend a broken configuration step by step, at a terminal.").parse_args(list(arguments))
    place = here()
    found = load(place.paths, place.env)
    if found.valid and not troubles.slips(found):
        output.say("The configuration is valid; there is nothing to repair. What else may be wrong: garra doctor")
        return 0
    if not (os.isatty(0) and os.isatty(1)):
        output.note(explained(place, found))
        return 1
    return 0 if Repair(place).talk(slips=True) == "mended" else 1


def explained(place: Place, found: Snapshot) -> str:
    """What is wrong and how it is mended, for whoever has no terminal."""
    look = Look(place, found)
    return "\n".join(
        (
            *look.lines(),
            "",
            f"Mend it step by step, at a terminal:      {place.command} repair",
            *([f"Or bring the last good one back:          {place.command} config restore"] if look.good else []),
            f"Or edit the file, then look at it again:  {place.command} config validate",
        )
    )


class Look:
    """A configuration that is not as it should be, fit to be shown."""

    def __init__(self, place: Place, found: Snapshot) -> None:
        self.found = found
        self.good = last_good(place.paths, place.env)
        self.faults, self.slips = troubles.faults(found), troubles.slips(found)
        self._place = place
        known = [secret for one in (found, self.good) if one is not None for secret in view.known_secrets(one)]
        self._clean = cleaner(known)

    @property
    def first(self) -> Trouble:
        return (*self.faults, *self.slips)[0]

    def shown(self, text: str) -> str:
        """A configuration's text without its secrets."""
        return output.harmless(self._clean(view.text(text)))

    def lines(self) -> list[str]:
        """Each fault in a line, and the line of the file below it."""
        file = self._place.paths.config_file
        state = "is not valid" if self.faults else "is valid, but not all in it can be used as it is written"
        said = [f"The configuration {file} {state}:"]
        for trouble in (*self.faults, *self.slips):
            said += self._told(trouble)
        return said

    def _told(self, trouble: Trouble) -> list[str]:
        raw = self.found.raw
        line, column = repair.spot(raw, trouble) if raw.strip() else (0, 0)
        message = self._clean(trouble.message)
        readable = message.partition(": ")[2] if message.startswith(f"line {line}, column ") else message
        where = f"line {line}" + (f", column {column}" if column else "") if line else ""
        head = ": ".join(part for part in (where, show(trouble.at), readable) if part)
        return [f"  {output.harmless(head)}", *(f"      {part}" for part in self._excerpt(line, column))]

    def _excerpt(self, line: int, column: int) -> tuple[str, ...]:
        shown, real = self.shown(self.found.raw).split("\n"), self.found.raw.split("\n")
        if not 0 < line <= len(real) or len(shown) != len(real):
            return ()
        same = shown[line - 1] == real[line - 1]
        return repair.excerpt(shown[line - 1], column if same else 0)


class Repair:
    """One sitting at a terminal."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._writer = Writer(place.paths, place.env)
        self._editor = foreground.editor(place.env)
        self._aside = True
        self._steps: dict[str, Callable[[Look, Choice], End | None]] = {
            "change": self._change,
            "value": self._value,
            "restore": self._restore,
            "edit": self._edit,
            "ask": self._ask,
            "go-on": lambda look, choice: "go-on",
            "anew": self._anew,
            "quit": self._quit,
        }

    def talk(self, *, slips: bool = False) -> End:
        """Until the configuration is valid (with `slips`: and no key in it misspelt), or the person wants to leave."""
        end: End | None = None
        while end is None:
            look = Look(self._place, load(self._place.paths, self._place.env))
            if not look.faults and not (slips and look.slips):
                output.say(output.painted("The configuration is valid.", "accent"))
                return "mended"
            output.say("\n" + "\n".join(look.lines()) + "\n")
            try:
                end = self._step(look)
            except GarraError as fault:
                output.say(output.painted(fault.message, "bad"))
        return end

    def _step(self, look: Look) -> End | None:
        menu = self._menu(look)
        for number, choice in enumerate(menu, 1):
            output.say(f"  {number:>2}  {output.harmless(choice.words)}")
        chosen = _chosen(menu)
        return self._steps[chosen.kind](look, chosen)

    def _menu(self, look: Look) -> tuple[Choice, ...]:
        raw = look.found.raw
        found = [*repair.changes(raw, look.first, lambda text: self._better(look, text))] if raw.strip() else []
        others = (change for slip in look.slips if slip is not look.first for change in repair.renames(raw, slip))
        found += [change for change in others if change.text not in {one.text for one in found}]
        good = look.good if look.faults else None
        model = good is not None and bool(good.config.agents.defaults.model.primary)
        name = os.path.basename(self._editor[0]) if self._editor else ""  # noqa: PTH119 - a word, no place
        return repair.choices(found, look.first, Facts(good is not None, name, model))

    def _better(self, look: Look, text: str) -> bool:
        after = snapshot_of(interpret(text, self._place.paths, self._place.env))
        return troubles.marks(after) < troubles.marks(look.found)

    def _put(self, look: Look, text: str) -> None:
        self._writer.mend(text, look.found.hash, aside=self._aside)
        self._aside = False

    def _change(self, look: Look, choice: Choice) -> None:
        assert choice.change is not None
        self._put(look, choice.change.text)
        output.say(f"Done: {output.harmless(choice.words)}.")

    def _value(self, look: Look, choice: Choice) -> None:
        values = importlib.import_module("garra.faces.cli.config")
        edits = importlib.import_module("garra.core.jsonedit")
        at, allowed = look.first.at, look.first.allowed
        hint = f" ({', '.join(allowed)})" if allowed else ""
        secret = hidden(at, importlib.import_module("garra.config.sections.lookup").secret_at)
        said = _asked(f"{show(at)}{hint}: ", secret=secret)
        if not said:
            return
        text = edits.put(look.found.raw, at, values.value_of(at, said, strict=False))
        if self._better(look, text):
            self._put(look, text)
            output.say(f"Done: {show(at)} is set.")
        else:
            output.say(f"That would not do either: {self._why(look, text)}. Nothing was changed.")

    def _why(self, look: Look, text: str) -> str:
        """What would be wrong with a text at the place that was to be mended, else anywhere."""
        after = snapshot_of(interpret(text, self._place.paths, self._place.env))
        found = (*troubles.faults(after), *troubles.slips(after))
        there = next((one for one in found if one.at == look.first.at), found[0] if found else look.first)
        return output.harmless(there.message)

    def _restore(self, look: Look, choice: Choice) -> None:
        assert look.good is not None
        difference = importlib.import_module("difflib").unified_diff(
            look.shown(look.found.raw).splitlines(),
            look.shown(look.good.raw).splitlines(),
            "as it is",
            "the last good one",
            n=1,
            lineterm="",
        )
        output.say("\n" + "\n".join(difference) + "\n")
        if _sure("Bring the last good one back?"):
            self._writer.restore()
            output.say(f"Done. What was broken is kept as {self._place.paths.set_aside[0]}")

    def _edit(self, look: Look, choice: Choice) -> None:
        if self._aside:
            self._writer.keep_aside()
            self._aside = False
        foreground.run([*self._editor, str(self._place.paths.config_file)])

    def _anew(self, look: Look, choice: Choice) -> None:
        if _sure("Begin with an empty configuration?"):
            self._writer.mend("{}\n", look.found.hash)
            output.say(f"Done. What was broken is kept as {self._place.paths.set_aside[0]}")

    def _ask(self, look: Look, choice: Choice) -> None:
        turn = importlib.import_module("garra.faces.cli.turn")  # the whole house: only who asks waits for it
        text = look.shown(look.found.raw)[:CONTEXT]
        words = ASKED.format(file=self._place.paths.config_file, faults="\n".join(look.lines()), text=text)
        ask = turn.Ask(words, session_key="repair")
        running = self._place.holder is not None
        went = turn.outcome(turn.through(self._place.target(), ask)) if running else turn.embedded(self._place, ask)
        output.say("\n" + output.harmless(went.text if went.ending == "ok" else went.fault))

    def _quit(self, look: Look, choice: Choice) -> End:
        if self._aside:
            output.say(NO_CHANGES)
        return "quit"


def _chosen(menu: Sequence[Choice]) -> Choice:
    """What a person takes from the menu, asked until it is one of its numbers; the last one at the end of the input."""
    while True:
        said = _asked(f"\nWhat shall be done? (1-{len(menu)}) ")
        if said is None or said.casefold() in ("q", "quit", "exit"):
            return menu[-1]
        if said.isdecimal() and 0 < int(said) <= len(menu):
            return menu[int(said) - 1]
        output.say(f"That is none of the choices; type a number from 1 to {len(menu)}.")


def _asked(words: str, *, secret: bool = False) -> str | None:
    """What the person types, None at the end of the input."""
    try:
        if secret:
            return str(importlib.import_module("getpass").getpass(words)).strip()
        return input(words).strip()
    except EOFError:
        output.say()
        return None


def _sure(words: str) -> bool:
    return (_asked(f"{words} (y/N) ") or "").casefold() in ("y", "yes")
