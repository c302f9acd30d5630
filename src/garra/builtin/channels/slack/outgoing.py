"""Messages of ours as calls of Slack's Web API. Pure: files are named, not read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

from garra.builtin.channels.slack.position import moment
from garra.builtin.channels.slack.spoken import escaped, silenced
from garra.sdk.channel import Address, Button, Outbound, SendFailed

FORMAT = "slack-mrkdwn"
MARK = "garra_message"
"""What a message of ours carries for programs: which one it is."""
_SECTION, _LABEL, _VALUE, _BUTTONS = 3000, 75, 2000, 25


def post(message: Outbound, chat: str, unfurl: Sequence[tuple[str, bool]]) -> dict[str, Any]:
    """The parameters of chat.postMessage. Raises SendFailed for buttons Slack cannot carry."""
    metadata = {"event_type": MARK, "event_payload": {"key": mark(message.key)}}
    return {
        "channel": chat,
        **_spoken(message),
        "thread_ts": thread(message) or None,
        "metadata": metadata,
        **dict(unfurl),
    }


def change(message: Outbound, chat: str, ts: str) -> dict[str, Any]:
    """The parameters of chat.update; buttons that are gone are taken away."""
    spoken = _spoken(message)
    return {"channel": chat, "ts": ts, **spoken, "blocks": spoken.get("blocks", [])}


def thread(message: Outbound) -> str:
    """The thread it goes to: its place's own, or that of the message it answers."""
    if message.address.thread:
        return message.address.thread
    return message.reply_to if moment(message.reply_to) > (0, 0) else ""


def mark(key: str) -> str:
    return sha256(key.encode()).hexdigest()[:32]


def carries(message: Mapping[str, Any], key: str) -> bool:
    """Whether a message in Slack is that one of ours."""
    metadata = message.get("metadata") or {}
    return metadata.get("event_type") == MARK and (metadata.get("event_payload") or {}).get("key") == mark(key)


def place(address: Address) -> str:
    return address.chat.removeprefix("channel:")


def _spoken(message: Outbound) -> dict[str, Any]:
    formatted = message.format == FORMAT
    text = silenced(message.text) if formatted else escaped(message.text)
    found: dict[str, Any] = {"text": text, "mrkdwn": formatted}
    if message.buttons:
        kind = "mrkdwn" if formatted else "plain_text"
        shown = text if formatted else message.text
        cuts = [shown[at : at + _SECTION] for at in range(0, len(shown), _SECTION)]
        sections = [{"type": "section", "text": {"type": kind, "text": cut}} for cut in cuts if cut.strip()]
        found["blocks"] = [*sections, *_rows(message.buttons)]
    return found


def _rows(rows: Sequence[Sequence[Button]]) -> list[dict[str, Any]]:
    buttons = [button for row in rows for button in row]
    if len(buttons) > _BUTTONS:
        raise SendFailed("refused", f"Slack shows at most {_BUTTONS} buttons in a row")
    wrong = next((button for button in buttons if not button.data or len(button.data) > _VALUE), None)
    if wrong is not None:
        raise SendFailed("refused", f"the button {wrong.label[:_LABEL]!r} carries nothing, or too much")
    numbers = iter(range(len(buttons)))
    return [{"type": "actions", "elements": [_button(button, next(numbers)) for button in row]} for row in rows if row]


def _button(button: Button, number: int) -> dict[str, Any]:
    label = {"type": "plain_text", "text": button.label[:_LABEL] or "…", "emoji": True}
    return {"type": "button", "text": label, "action_id": f"garra:{number}", "value": button.data}
