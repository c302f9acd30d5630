"""`session` and `messages`: how conversations map to sessions, and how messages are queued and answered."""

from typing import Annotated, Any, Literal

from garra.config.sections.fields import AfterValidator, BeforeValidator, Closed, Field, OpenSection, Section, part
from garra.core import retention, sizes

Size = Annotated[int, BeforeValidator(sizes.count)]
Length = Annotated[str, AfterValidator(retention.length)]
DmScope = Literal["main", "per-peer", "per-channel-peer", "per-account-channel-peer"]


class Reset(Section):
    """When a session starts anew by itself."""

    mode: Literal["none", "daily", "idle"] = "none"
    at_hour: int = Field(4, ge=0, le=23)
    idle_minutes: float | None = Field(None, gt=0)


class SendRule(Section):
    """One rule about answering at all."""

    action: Annotated[Literal["allow", "deny"], Closed("deny")]
    match: dict[str, Any] = Field(default_factory=dict)


class SendPolicy(Section):
    """Whether a session may be answered; the first denial wins."""

    default: Annotated[Literal["allow", "deny"], Closed("deny")] = "allow"
    rules: tuple[SendRule, ...] = ()


class Maintenance(OpenSection):
    """How long sessions are kept and how much of the disk they may take. `prune_after` as 30d or 12h; sizes as 10gb."""

    mode: Literal["enforce", "warn"] = "enforce"
    prune_after: Length = "30d"
    max_entries: int = Field(5000, ge=1)
    reset_archive_retention: Length | Literal[False] = False
    max_disk_bytes: Size = Field(10 << 30, ge=0)
    high_water_bytes: Size = Field(0, ge=0)


class Session(OpenSection):
    """How conversations map to sessions. `digest`: whether a new one is told in brief of the one before it; `auto`
    where it began by itself, `always` after /new and /reset too.
    """

    scope: str = "per-sender"
    dm_scope: Annotated[DmScope | None, Closed("per-account-channel-peer")] = None
    group_scope: Literal["main", "per-group"] = "per-group"
    main_key: str = "main"
    identity_links: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    reset: Reset = part(Reset)
    reset_by_type: dict[str, Reset] = Field(default_factory=dict)
    reset_by_channel: dict[str, Reset] = Field(default_factory=dict)
    reset_triggers: tuple[str, ...] = ("/new", "/reset")
    idle_minutes: float | None = Field(None, gt=0)
    digest: Literal["auto", "always", "off"] = "auto"
    store: str = ""
    maintenance: Maintenance = part(Maintenance)
    send_policy: SendPolicy = part(SendPolicy)
    typing_mode: Literal["never", "instant", "thinking", "message"] | None = None


QueueMode = Literal["steer", "followup", "collect", "interrupt", "drop", "steer-backlog", "queue"]


class Queue(OpenSection):
    """What happens to a message that comes while the agent works. `debounceMs` in milliseconds."""

    mode: QueueMode | None = None
    by_channel: dict[str, QueueMode] = Field(default_factory=dict)
    debounce_ms: int = Field(500, ge=0)
    cap: int = Field(20, ge=1)
    drop: Literal["old", "new", "summarize"] = "summarize"


class Messages(OpenSection):
    """How messages are queued and answered."""

    queue: Queue = part(Queue)
    inbound: dict[str, Any] = Field(default_factory=dict)
    group_chat: dict[str, Any] = Field(default_factory=dict)
    response_prefix: str = ""
    ack_reaction: str = ""
    ack_reaction_scope: str = ""
