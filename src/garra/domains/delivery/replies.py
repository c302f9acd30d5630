"""An answer as the messages that carry it: through the last gate, cut to the platform's limits, in all its formats."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from types import MappingProxyType
from typing import Any, Literal, cast

from garra.core.chunking import Blocks
from garra.core.markup import Document
from garra.core.outward import Outward, outward
from garra.core.pieces import Frame, Piece, pieces
from garra.core.progress import Mode
from garra.core.progress import Settings as Progress
from garra.core.render import SIMPLER
from garra.core.tables import Tables
from garra.core.value import frozen
from garra.domains.delivery.draft import Draft, Form
from garra.sdk.channel import Address, Button, ChatKind, File, Limits

EMPTY = "The model gave no answer. Try again, or choose another model."
"""What is said where nothing of an answer may leave: silence would be no answer."""

Anchor = Literal["off", "first", "all"]
Read = Callable[[str], Document]


@frozen
class Settings:
    """How answers look in one kind of chat.

    `limit` is the longest message wanted, 0 for the platform's own. `anchor`: which messages point at the one they
    answer. `blocks`: the answer goes out in blocks while it grows, each within `block_s` seconds. `keep`: the one line
    that progress shrinks to stays. `ack` is the reaction that says "seen"; `moods`: it changes with what is done.
    `whole`: paragraphs stay whole where they can. `pause_ms`: the least and the most between two blocks.
    """

    progress: Progress = field(default_factory=Progress)
    blocks: Blocks | None = None
    block_s: float = 15.0
    limit: int = 0
    anchor: Anchor = "off"
    keep: bool = True
    ack: str = ""
    moods: bool = False
    typing: bool = True
    prefix: str = ""
    whole: bool = False
    tables: Tables = "block"
    pause_ms: tuple[int, int] = (0, 0)


@frozen
class Extra:
    """What goes with an answer's words. `window` is the message that showed it growing and now becomes its first part;
    `number` counts the messages of this answer that went before. `own`: the words are the gateway's, not a model's, so
    that all of them leave: none is a tag or a mark, whoever chose the names in them.
    """

    buttons: tuple[tuple[Button, ...], ...] = ()
    files: tuple[File, ...] = ()
    window: str = ""
    number: int = 0
    own: bool = False


BARE = Extra()


class Replies:
    """Makes drafts. The Markdown parser is loaded with the first answer."""

    def __init__(self, read: Read | None = None, link: Callable[[File], str | None] = lambda _: None) -> None:
        self._read = read
        self._link = link

    def read(self, text: str) -> Document:
        """Markdown as a document."""
        if self._read is None:
            module = importlib.import_module("garra.domains.delivery.markdown")
            self._read = cast(Read, module.Reader().read)
        return self._read(text)

    def pieces(self, text: str, limits: Limits, settings: Settings) -> tuple[Piece, ...]:
        """Markdown as messages within the limits."""
        return pieces(self.read(text), frame(limits, settings))

    def drafts(
        self,
        run_id: str,
        address: Address,
        reply: str,
        *,
        limits: Limits,
        settings: Settings,
        anchor: str = "",
        extra: Extra = BARE,
    ) -> list[Draft]:
        """The messages of an answer: at least one, if none went before. `anchor` is the id of the message it answers.

        The first points at it, buttons stand under the last words, files come behind them. The keys are the same for
        the same run: `out:<run_id>:<n>`.
        """
        if extra.number and not reply.strip() and not extra.files:
            return []
        gated = Outward(reply) if extra.own else outward(reply)
        sent, over = _weighed(extra.files, limits)
        lines = [
            gated.text or ("" if sent or over else EMPTY),
            *(_heavy(file, limits, self._link(file)) for file in over),
        ]
        text = settings.prefix + "\n\n".join(line for line in lines if line)
        formats = limits.formats or ("plain",)
        cut = [forms(piece, formats) for piece in (self.pieces(text, limits, settings) if text.strip() else ())]
        ladders = [*cut, ()] if sent else cut
        spoken = len(cut) - 1 if cut else 0
        to = gated.anchor or (anchor if gated.current or settings.anchor != "off" else "")
        return [
            Draft(
                key=f"out:{run_id}:{extra.number + at}",
                address=address,
                forms=ladder,
                reply_to=to if at == 0 or settings.anchor == "all" else "",
                buttons=extra.buttons if at == spoken else (),
                files=sent if at == len(cut) else (),
                position=extra.number + at,
                run_id=run_id,
                edits=extra.window if at == 0 and cut else "",
            )
            for at, ladder in enumerate(ladders)
        ]


def forms(piece: Piece, formats: Sequence[str]) -> tuple[Form, ...]:
    """The ladder of one message, best form first; behind a format stands its simpler kind, if it differs."""
    out: list[Form] = []
    for name, text in zip(formats, piece.texts, strict=True):
        out.append(Form(name, text))
        simple = SIMPLER[name](text) if name in SIMPLER else text
        out += [Form(name, simple)] if simple != text else []
    return tuple(out)


def frame(limits: Limits, settings: Settings) -> Frame:
    """What a message must fit, and how what is in it is cut and written."""
    most = min(limits.text, settings.limit) if settings.limit > 0 else limits.text
    return Frame(most, limits.unit, limits.formats or ("plain",), settings.whole, settings.tables)


def _weighed(files: Sequence[File], limits: Limits) -> tuple[tuple[File, ...], tuple[File, ...]]:
    """(files the platform takes, files over its limit)."""
    fit = tuple(file for file in files if file.size <= limits.file_out)
    return fit, tuple(file for file in files if file.size > limits.file_out)


def _heavy(file: File, limits: Limits, link: str | None) -> str:
    facts = f"{file.name} ({_megabytes(file.size)}) is over the limit of {_megabytes(limits.file_out)} here"
    return f"{facts}: {link}" if link else f"{facts}, so it was not sent."


def _megabytes(size: int) -> str:
    return f"{size / (1 << 20):.1f} MB"


# ---- what the configuration says


def settings(
    rules: Mapping[str, Any],
    limits: Limits,
    kind: ChatKind,
    messages: Mapping[str, Any],
    *,
    human: Mapping[str, Any] = MappingProxyType({}),
) -> Settings:
    """Settings of an account: `rules` are its keys in the file, `messages` the file's section of that name, `human`
    the agent's `humanDelay`.

    Where nothing is said: what is done shows while it is done, where messages can be edited, and is taken away in the
    end; in a group the answer points at what it answers.
    """
    streaming = rules.get("streaming")
    told: Mapping[str, Any] = streaming if isinstance(streaming, Mapping) else {"mode": _older(streaming)}
    mode = _mode(told.get("mode"), limits)
    part = _section(told, "progress" if mode == "progress" else "preview")
    base = Progress()
    progress = Progress(
        mode=mode,
        tools=part.get("toolProgress") is not False,
        comments=part.get("commentary") is not False,
        commands=part.get("commandText") == "raw",
        lines=_number(part.get("maxLines"), base.lines),
        width=_number(part.get("maxLineChars"), base.width),
        label=_label(part.get("label")),
        blocks=_blocks(_section(part, "chunk"), base.blocks),
    )
    block = _section(told, "block")
    return Settings(
        progress=progress,
        blocks=_blocks(_section(block, "coalesce"), Blocks()) if block.get("enabled") is True else None,
        limit=_number(rules.get("textChunkLimit"), 0),
        anchor=_anchor(rules.get("replyToMode"), kind),
        keep="mode" in told and told["mode"] is not None,
        ack=_ack(rules, messages, kind),
        moods=_section(messages, "statusReactions").get("enabled") is True,
        typing=rules.get("typingMode") != "never",
        prefix=_prefix(rules, messages),
        whole=told.get("chunkMode", rules.get("chunkMode")) == "newline",
        tables=_TABLES.get(str(_section(rules, "markdown").get("tables")), "block"),
        pause_ms=pause(human),
    )


_TABLES: Mapping[str, Tables] = {"off": "off", "bullets": "bullets", "code": "code"}
_NATURAL = (800, 2_500)


def pause(human: Mapping[str, Any]) -> tuple[int, int]:
    """The least and the most milliseconds between two blocks, as `humanDelay` says: `mode`, `minMs`, `maxMs`."""
    mode = human.get("mode")
    if mode not in ("natural", "custom"):
        return 0, 0
    least, most = (_number(human.get("minMs"), _NATURAL[0], 0), _number(human.get("maxMs"), _NATURAL[1], 0))
    return _NATURAL if mode == "natural" else (least, max(least, most))


def _older(streaming: object) -> object:
    """`streaming: true` and `streaming: "partial"`, as older files have it."""
    return ("partial" if streaming else "off") if isinstance(streaming, bool) else streaming


def _mode(told: object, limits: Limits) -> Mode:
    """The mode; nothing is shown where messages cannot be edited, or by a word that is not known; unasked, nothing
    where its going leaves a mark."""
    if limits.edits_per_s <= 0 or (told is None and limits.traces):
        return "off"
    modes: Mapping[object, Mode] = {None: "progress", "partial": "partial", "block": "block", "progress": "progress"}
    return modes.get(told, "off") if told is None or isinstance(told, str) else "off"


def _section(of: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = of.get(name)
    return found if isinstance(found, Mapping) else {}


def _number(value: object, default: int, least: int = 1) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= least else default


def _blocks(of: Mapping[str, Any], default: Blocks) -> Blocks:
    least = _number(of.get("minChars"), default.least)
    return Blocks(least, max(least, _number(of.get("maxChars"), default.most)))


def _label(told: object) -> str:
    if told is False:
        return ""
    return told if isinstance(told, str) and told not in ("", "auto") else Progress().label


def _anchor(told: object, kind: ChatKind) -> Anchor:
    if told is None:
        return "off" if kind == "direct" else "first"
    modes: Mapping[object, Anchor] = {"first": "first", "all": "all", "batched": "first"}
    return modes.get(told, "off") if isinstance(told, str) else "off"


def _ack(rules: Mapping[str, Any], messages: Mapping[str, Any], kind: ChatKind) -> str:
    """The reaction that says "seen", in the kinds of chat that the scope has; a group's is for what names the bot."""
    scope = messages.get("ackReactionScope", "group-mentions")
    wanted = {"direct": ("direct", "all"), "group": ("group-mentions", "group-all", "all")}
    if rules.get("reactionLevel") == "off" or scope not in wanted.get(kind, ()):
        return ""
    told = rules.get("ackReaction", messages.get("ackReaction", "👀"))
    return told if isinstance(told, str) else ""


def _prefix(rules: Mapping[str, Any], messages: Mapping[str, Any]) -> str:
    told = rules.get("responsePrefix", messages.get("responsePrefix"))
    return f"{told.rstrip()} " if isinstance(told, str) and told.strip() and told != "auto" else ""
