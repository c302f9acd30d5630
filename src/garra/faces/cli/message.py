"""`garra message send`: one message to a chat, through the gateway's outbox."""

from __future__ import annotations

import argparse
import base64
import mimetypes
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from garra.client import quick
from garra.core.errors import UserError
from garra.faces.cli import output, parsing, place

SCOPES = ("operator.read", "operator.write")
WAIT_S = 60.0
SENDING = (
    "Send one message to a chat, by the running gateway. It is stored first: where the account has no connection, it "
    "goes as soon as there is one."
)
FILE_BYTES = 15 << 20
"""A file goes to the gateway in one frame."""


def run(arguments: Sequence[str]) -> int:
    """Exit code 0 when the platform confirmed it or it waits for the link, 1 when it did not go through."""
    words = parsing.joined(arguments, {"-m": "--message", "-t": "--to"})
    if not words:
        _parser().print_help()
        return 0
    asked = _parser().parse_args(words)
    target = place.here().target(parsing.wanted(asked))
    if not asked.message and not asked.media:
        raise UserError("there is nothing to send: give --message or --media")
    if asked.dry_run:
        return _would(target, asked)
    found = quick.call(target, "send", _params(asked), scopes=SCOPES, timeout_s=WAIT_S)
    if asked.json:
        output.say_json(found)
    else:
        output.say(_told(found))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = parsing.parser("message", "Send a message to a chat.")
    steps = parser.add_subparsers(metavar="COMMAND", required=True)
    send = parsing.with_target(
        parsing.with_json(steps.add_parser("send", help="send one message", description=SENDING))
    )
    where = "a chat's id, or CHANNEL:CHAT, such as telegram:123456789"
    send.add_argument("-t", "--to", "--target", dest="to", required=True, metavar="CHAT", help=where)
    send.add_argument("-m", "--message", default="", metavar="TEXT", help="what to say (Markdown)")
    send.add_argument("--media", action="append", default=[], metavar="FILE", help="a file to send; may be repeated")
    send.add_argument("--channel", default="", help="which channel, where --to does not say")
    send.add_argument("--account", default="", help="which account of it")
    send.add_argument("--thread", "--thread-id", dest="thread", default="", metavar="ID", help="a topic or thread")
    send.add_argument("--reply-to", default="", metavar="ID", help="the message that it answers")
    send.add_argument("--silent", action="store_true", help="without a sound, where the platform can")
    send.add_argument(
        "--key", default="", metavar="KEY", help="the same key is sent once, however often it is asked for"
    )
    send.add_argument("--dry-run", action="store_true", help="only say where it would go")
    return parser


def _params(asked: argparse.Namespace) -> dict[str, Any]:
    params = {
        "to": asked.to,
        "message": asked.message,
        "channel": asked.channel,
        "accountId": asked.account,
        "threadId": asked.thread,
        "replyToId": asked.reply_to,
        "silent": asked.silent,
        "attachments": [_file(Path(path).expanduser()) for path in asked.media],
    }
    return {"idempotencyKey": asked.key or quick.fresh()} | {name: value for name, value in params.items() if value}


def _would(target: Any, asked: argparse.Namespace) -> int:
    options = {"to": asked.to, "message": asked.message, "threadId": asked.thread, "dryRun": True}
    params = {"action": "send", "params": options, "channel": asked.channel, "idempotencyKey": quick.fresh()}
    found = quick.call(target, "message.action", params | {"accountId": asked.account}, scopes=SCOPES)
    if asked.json:
        output.say_json(found)
    else:
        output.say(f"It would go to {found['channel']} ({found['accountId']}), chat {found['to']}.")
    return 0


def _file(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as opened:
            data = opened.read(FILE_BYTES + 1)
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror or error}") from None
    if len(data) > FILE_BYTES:
        raise UserError(f"{path} is larger than {FILE_BYTES >> 20} MiB: give a link to it instead")
    mime = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    return {"fileName": path.name, "mimeType": mime, "content": base64.b64encode(data).decode()}


def _told(found: dict[str, Any]) -> str:
    where = f"{found['channel']} chat {found['chatId']}"
    match found["state"]:
        case "sent":
            return f"Sent to {where}. Its story: garra messages show {found['ids'][0]}"
        case "unsure":
            return f"Sent to {where}, but it never confirmed: garra messages show {found['ids'][0]}"
        case _:
            return f"Stored; it goes to {where} as soon as that is connected: garra messages show {found['ids'][0]}"
