"""How far the tools of an agent reach: large sets, other conversations, other agents, other chats."""

from typing import Annotated, Any, Literal

from garra.config.sections.fields import BeforeValidator, Closed, Field, OpenSection, part


class ToolSearch(OpenSection):
    """Whether less used tools are told by name only. `enabled` absent: where all of them are over `directBytes`.

    `direct` names tools that are told in full all the same.
    """

    enabled: bool | None = None
    mode: Literal["tools", "directory", "code"] = "tools"
    search_default_limit: int = Field(8, ge=1, le=50)
    max_search_limit: int = Field(20, ge=1, le=50)
    direct: tuple[str, ...] = ()
    direct_bytes: int | None = Field(None, ge=0)


def _searching(value: Any) -> Any:
    if isinstance(value, bool):
        return {"enabled": value}
    return {"enabled": True, **value} if isinstance(value, dict) and value else value


Searching = Annotated[ToolSearch, BeforeValidator(_searching)]
"""`tools.toolSearch`: true, false, or an object, which switches it on unless it says otherwise."""


class SessionTools(OpenSection):
    """Which conversations the session tools reach. Somebody who is no owner reaches his own alone, whatever is set."""

    visibility: Annotated[Literal["self", "tree", "agent", "all"], Closed("self")] = "tree"


class AgentToAgent(OpenSection):
    """Which agents reach each other's conversations, where `tools.sessions.visibility` is `all`; empty means any."""

    enabled: Annotated[bool, Closed(False)] = True
    allow: tuple[str, ...] = ()
    max_ping_pong_turns: int = Field(5, ge=0, le=5)


class CrossContext(OpenSection):
    """Whether `message` may send into other chats than its own: those of the same channel, those of others."""

    allow_within_provider: Annotated[bool, Closed(False)] = True
    allow_across_providers: Annotated[bool, Closed(False)] = True


class GatewayTool(OpenSection):
    """The tool `gateway`: for how many seconds a change that it made stays unconfirmed."""

    confirm_seconds: float = Field(120.0, ge=10, le=3600)


class MessageTool(OpenSection):
    """The tool `message`. `to` names further chats it may send to, as `channel:chat`."""

    cross_context: CrossContext = part(CrossContext)
    to: tuple[str, ...] = ()
