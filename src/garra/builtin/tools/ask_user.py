"""A question to the person of this chat, with what there is to choose; the answer is waited for."""

from __future__ import annotations

from garra.sdk.tool import Call, Result, ToolInfo, Update

_OPTION = {
    "type": "object",
    "properties": {"label": {"type": "string", "minLength": 1}, "description": {"type": "string"}},
    "required": ["label"],
    "additionalProperties": False,
}
_QUESTION = {
    "type": "object",
    "properties": {
        "id": {"type": "string", "description": "small_word"},
        "header": {"type": "string", "description": "at most 12 letters"},
        "question": {"type": "string", "minLength": 1},
        "options": {"type": "array", "items": _OPTION, "maxItems": 4, "description": "2 to 4, the best first"},
        "multiSelect": {"type": "boolean"},
    },
    "required": ["question"],
    "additionalProperties": False,
}


class AskUser:
    """The tool `ask_user`."""

    info = ToolInfo(
        "ask_user",
        "Ask",
        "Ask the person something only they can decide, and wait. One question; words of their own are always "
        "possible. Never to ask whether you may go on, never for a password. No answer: go on by your best judgment.",
        {
            "type": "object",
            "properties": {
                "questions": {"type": "array", "items": _QUESTION, "minItems": 1, "maxItems": 3},
                "timeoutSeconds": {"type": "integer", "description": "default 900, 30 to 3600"},
            },
            "required": ["questions"],
            "additionalProperties": False,
        },
        mode="sequential",
        source="openclaw",
        groups=("group:agents",),
        declared=True,
    )

    async def execute(self, call: Call, _: Update) -> Result:
        answer = await call.context.grants.ask("question.ask", call.arguments)
        if answer["status"] != "answered":
            return Result.of("Nobody answered. Go on by your best judgment.", answer)
        rows = [f"{name}: {', '.join(words)}" for name, words in answer["answers"]["answers"].items()]
        return Result.of("\n".join(rows), answer)
