"""`tools`: which tools a run may call, and how programs are run."""

from typing import Annotated, Any, Literal

from garra.config.sections.fields import Closed, Field, OpenSection, SecretText, Section, part
from garra.config.sections.media import Media
from garra.config.sections.reach import AgentToAgent, GatewayTool, MessageTool, Searching, SessionTools, ToolSearch
from garra.config.sections.web import Web


class ToolPolicy(Section):
    """Names, groups (`group:fs`) and patterns; a denial wins. `allow` absent means: what the profile gives."""

    profile: str | None = None
    allow: tuple[str, ...] | None = None
    also_allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()


class Reviewer(OpenSection):
    """A model that looks at a command before a person is asked (`mode` auto); it may refuse it, and no more.

    `model` is `provider/model`, the agent's own where none is named. It has `timeout_ms`.
    """

    model: str = ""
    timeout_ms: int = Field(30_000, ge=1_000, le=600_000)
    thinking: str = ""


class SafeBinProfile(Section):
    """Which arguments leave a program of `safeBins` a filter: those flags, those with a value, and so many others."""

    min_positional: int = Field(0, ge=0)
    max_positional: int = Field(0, ge=0)
    allowed_flags: tuple[str, ...] = ()
    allowed_value_flags: tuple[str, ...] = ()
    denied_flags: tuple[str, ...] = ()


class ExecTool(OpenSection):
    """How programs are run: where, what needs a person's yes, for how long (seconds). `timeout_seconds` comes before
    `timeout_sec`, and may be 0: no limit.

    `mode` says security and ask in one word; where they are set too, the stricter of each holds. `grant_expiry_days`
    ends what an `allow-always` lets pass. `safe_bins` are filters that run without an entry in the allowlist: absent,
    the usual ones (cut, uniq, head, tail, tr, wc). `secret_env` lends secrets to single programs, by program (its name
    or its path) and variable.
    """

    host: Annotated[Literal["auto", "sandbox", "gateway", "node"], Closed("sandbox")] = "auto"
    mode: Annotated[Literal["deny", "allowlist", "ask", "auto", "full"] | None, Closed("deny")] = None
    security: Annotated[Literal["deny", "allowlist", "full"] | None, Closed("deny")] = None
    ask: Annotated[Literal["off", "on-miss", "always"] | None, Closed("always")] = None
    node: str = ""
    timeout_sec: float = Field(1_800.0, gt=0)
    timeout_seconds: float | None = Field(None, ge=0)
    background_ms: int = Field(10_000, ge=0)
    path_prepend: tuple[str, ...] = ()
    safe_bins: tuple[str, ...] | None = None
    safe_bin_trusted_dirs: tuple[str, ...] = ()
    safe_bin_profiles: dict[str, SafeBinProfile] = Field(default_factory=dict)
    notify_on_exit: bool = True
    reviewer: Reviewer = part(Reviewer)
    grant_expiry_days: int | None = Field(None, ge=1, le=3_650)
    secret_env: dict[str, dict[str, SecretText]] = Field(default_factory=dict)


class FsTool(Section):
    """Whether file tools stay below the workspace."""

    workspace_only: bool = True


class Elevated(Section):
    """Who may have programs run outside the sandbox: sender ids, by channel."""

    enabled: bool = False
    allow_from: dict[str, tuple[str | int, ...]] = Field(default_factory=dict)


class LoopDetectors(Section):
    """One call again and again; two calls that take turns; one that looks how something stands, and nothing moves."""

    generic_repeat: bool = True
    ping_pong: bool = True
    known_poll_no_progress: bool = True


class LoopDetection(OpenSection):
    """When a run that goes round in circles is told so (`warning_threshold`), and when it is ended
    (`critical_threshold`), in calls that had the same answer. In a row it is less: `repeat_threshold`, and
    `failure_threshold` for a call that fails; one more ends the run. `unknown_tool_threshold` calls of tools that do
    not exist end it, and `max_refusals` answers with calls that a policy or a person refused (0: never).
    """

    enabled: bool = True
    warning_threshold: int = Field(10, ge=2)
    critical_threshold: int = Field(20, ge=3)
    repeat_threshold: int = Field(5, ge=2)
    failure_threshold: int = Field(3, ge=2)
    unknown_tool_threshold: int = Field(10, ge=0)
    max_refusals: int = Field(6, ge=0)
    detectors: LoopDetectors = part(LoopDetectors)


class Taint(Section):
    """What a turn that has read text from outside may do unasked.

    `mode`: a mark holds as long as the text is in what the model is sent, or for the turn that read it alone, or not at
    all. `exec`: commands in a sandbox without a network run unasked, or those and what the allowlist lets through on
    the machine, or none; a command that the allowlist holds word for word runs in any case but the last. `files`: whose
    files are from outside, those of people who are no owners, or the owner's too. `fetch`: addresses that the
    conversation has shown are fetched unasked, or any.
    """

    mode: Annotated[Literal["on", "turn", "off"], Closed("on")] = "on"
    exec: Annotated[Literal["confined", "listed", "ask"], Closed("ask")] = "confined"
    files: Annotated[Literal["others", "all"], Closed("all")] = "others"
    fetch: Annotated[Literal["seen", "any"], Closed("seen")] = "seen"


class Narrowed(OpenSection):
    """The tools of some sessions alone: those in the sandbox, or sub-agents."""

    tools: ToolPolicy | None = None


class Tools(ToolPolicy):
    """Which tools a run may call, and how they behave."""

    exec: ExecTool = part(ExecTool)
    fs: FsTool = part(FsTool)
    elevated: Elevated = part(Elevated)
    taint: Taint = part(Taint)
    by_provider: dict[str, ToolPolicy] = Field(default_factory=dict)
    tools_by_sender: dict[str, ToolPolicy] = Field(default_factory=dict, alias="toolsBySender")
    sandbox: Narrowed = part(Narrowed)
    web: Web = part(Web)
    media: Media = part(Media)
    links: dict[str, Any] = Field(default_factory=dict)
    code_mode: Any = None
    tool_search: Searching = part(ToolSearch)
    agent_to_agent: AgentToAgent = part(AgentToAgent)
    sessions: SessionTools = part(SessionTools)
    message: MessageTool = part(MessageTool)
    gateway: GatewayTool = part(GatewayTool)
    subagents: Narrowed = part(Narrowed)
    loop_detection: LoopDetection = part(LoopDetection)
