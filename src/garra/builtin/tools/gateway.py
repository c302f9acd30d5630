"""The gateway's own settings: read, looked up, and changed in what an agent may propose, if the owner agrees."""

from __future__ import annotations

import json
from collections import OrderedDict
from typing import Any

from garra.core.errors import ToolFailed
from garra.sdk.tool import Call, Effect, Result, ToolInfo, Update

KEPT = 32


class Gateway:
    """The tool `gateway`."""

    info = ToolInfo(
        "gateway",
        "Gateway",
        "The gateway's settings. config.get (path), config.schema.lookup (path), config.patch (patch: an object to be "
        "merged, null removes; the owner is asked; it is made after this turn and taken back unless confirmed), "
        "config.confirm, restart (asked, after this turn).",
        {
            "type": "object",
            "properties": {
                "action": {
                    "type": "string",
                    "enum": ["config.get", "config.schema.lookup", "config.patch", "config.confirm", "restart"],
                },
                "path": {"type": "string", "description": "such as agents.defaults.model"},
                "patch": {"type": "object"},
            },
            "required": ["action"],
            "additionalProperties": False,
        },
        mode="sequential",
        source="openclaw",
        groups=("group:automation",),
        effects=("configures",),
        declared=True,
    )

    def __init__(self) -> None:
        self._shown: OrderedDict[tuple[str, str], str] = OrderedDict()

    async def affects(self, call: Call) -> tuple[Effect, ...]:
        """Only a patch and a restart change something; one that may not be is refused before anybody is asked."""
        if call.arguments["action"] == "restart":
            await call.context.grants.ask("gateway.restart", {"dry": True})
            return ("configures",)
        if call.arguments["action"] != "config.patch":
            return ()
        await self._preview(call)
        return ("configures",)

    async def show(self, call: Call) -> str:
        """The change as a diff; the yes holds for the text that it was made from."""
        if call.arguments["action"] == "restart":
            return "Restart the gateway, once this turn is over. What runs then is gone on with afterwards."
        if call.arguments["action"] != "config.patch":
            return str(call.arguments["action"])
        found = await self._preview(call)
        self._shown[call.context.run_id, call.id] = found["base"]
        while len(self._shown) > KEPT:
            self._shown.popitem(last=False)
        return "Change the configuration:\n" + "\n".join(found["diff"])

    async def _preview(self, call: Call) -> dict[str, Any]:
        patch = call.arguments.get("patch")
        if not patch:
            raise ToolFailed("Change what? Give patch, an object to be merged.")
        found: dict[str, Any] = await call.context.grants.ask("config.preview", {"patch": patch})
        return found

    async def execute(self, call: Call, _: Update) -> Result:
        asked, ask = call.arguments, call.context.grants.ask
        match asked["action"]:
            case "config.get":
                answer = await ask("config.get", {"path": asked.get("path", "")})
                return Result.of(json.dumps(answer["value"], ensure_ascii=False, indent=1), answer)
            case "config.schema.lookup":
                answer = await ask("config.schema.lookup", {"path": asked.get("path", "")})
                return Result.of(json.dumps(answer, ensure_ascii=False), answer)
            case "config.confirm":
                answer = await ask("config.confirm", {})
                return Result.of("It stays." if answer["confirmed"] else "No change is on trial.", answer)
            case "restart":
                answer = await ask("gateway.restart", {})
                return Result.of("Agreed. It begins anew after this turn, and says here when it is back.", answer)
        base = self._shown.pop((call.context.run_id, call.id), "")
        if not base:
            raise ToolFailed("Not changed: nobody was asked.")
        answer = await ask("config.patch", {"patch": asked["patch"], "base": base})
        seconds = f"{answer['revertsAfterSeconds']:.0f}"
        return Result.of(
            f"Agreed. It is changed when this turn is over, and taken back {seconds} s later unless the person writes "
            "here again. Tell them so.",
            answer,
        )
