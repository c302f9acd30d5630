"""Something sent, answered, changed or taken back in a chat, besides the turn's own answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from garra.core.errors import ToolFailed
from garra.sdk.tool import Call, Effect, Result, ToolInfo, Update


class Message:
    """The tool `message`."""

    info = ToolInfo(
        "message",
        "Message",
        "Send into a chat, or reply, react, edit, delete there. Your answer is sent anyway: use it for anything else, "
        "and answer NO_REPLY when it said all. Default: this chat; `to` another, as CHANNEL:CHAT.",
        {
            "type": "object",
            "properties": {
                "action": {"type": "string", "enum": ["send", "reply", "react", "edit", "delete"]},
                "to": {"type": "string"},
                "text": {"type": "string"},
                "messageId": {"type": "string", "description": "default for reply and react: what you answer"},
                "emoji": {"type": "string"},
                "threadId": {"type": "string"},
                "accountId": {"type": "string"},
                "silent": {"type": "boolean"},
            },
            "required": ["action"],
            "additionalProperties": False,
        },
        mode="sequential",
        source="channel",
        groups=("group:messaging",),
        effects=("sends",),
        declared=True,
    )

    def prepare(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """The names that the original knows them by."""
        old = {"message": "text", "target": "to", "replyTo": "messageId"}
        return {old.get(name, name): value for name, value in arguments.items()}

    async def affects(self, call: Call) -> tuple[Effect, ...]:
        """What stays in the turn's own chat is its answer, no more. Nobody is asked for what may not be."""
        if not call.arguments.get("to"):
            return ()
        found = await call.context.grants.ask("message.where", {**call.arguments, "callId": call.id})
        return () if found["own"] else ("sends",)

    async def show(self, call: Call) -> str:
        asked = call.arguments
        where = f" to {asked['to']}" if asked.get("to") else " in this chat"
        which = f" (message {asked['messageId']})" if asked.get("messageId") else ""
        return f"{asked['action']}{where}{which}:\n{asked.get('text') or asked.get('emoji') or ''}"

    async def execute(self, call: Call, _: Update) -> Result:
        answer = await call.context.grants.ask("message", {**call.arguments, "callId": call.id})
        status = answer["status"]
        if status == "dead":
            raise ToolFailed(f"It could not be sent: {answer.get('reason') or 'the platform refused it'}.")
        words = {
            "ok": "Done.",
            "sent": f"Sent to {answer['chat']} (message {answer['messageId']}).",
            "pending": f"Stored for {answer['chat']}; it goes as soon as there is a connection. Do not send it again.",
        }
        line = words.get(status, f"On its way to {answer['chat']}; whether it arrived is not known. Do not repeat it.")
        return Result.of(line, answer)
