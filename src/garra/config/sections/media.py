"""`tools.media`: what is done with recordings that people send; pictures and videos keep their keys."""

from typing import Annotated, Literal

from garra.config.sections.fields import Closed, Field, OpenSection, SecretText, part


class ScopeMatch(OpenSection):
    """What a rule is about; what is empty matches everything. `key_prefix` is the start of a session's key."""

    channel: str = ""
    chat_type: str = ""
    key_prefix: str = ""


class ScopeRule(OpenSection):
    """The first rule that matches decides."""

    action: Annotated[Literal["allow", "deny"], Closed("deny")] = "allow"
    match: ScopeMatch = part(ScopeMatch)


class Scope(OpenSection):
    """Whose recordings are heard; `default` where no rule matches."""

    default: Annotated[Literal["allow", "deny"], Closed("deny")] = "allow"
    rules: tuple[ScopeRule, ...] = ()


class MediaModel(OpenSection):
    """One that can be asked: a provider's model, or a program of the owner's (`type: "cli"`).

    Sizes are bytes, times seconds; what is absent is as the kind of media says.
    """

    type: Literal["provider", "cli"] | None = None
    capabilities: tuple[str, ...] | None = None
    provider: str = ""
    model: str = ""
    base_url: str = ""
    headers: dict[str, SecretText] = Field(default_factory=dict)
    command: str = ""
    args: tuple[str, ...] = ()
    language: str = ""
    prompt: str = ""
    max_bytes: int | None = Field(None, gt=0)
    max_chars: int | None = Field(None, gt=0)
    timeout_seconds: float | None = Field(None, gt=0)


class Picked(OpenSection):
    """Which of a message's recordings are heard."""

    mode: Literal["first", "all"] = "first"
    max_attachments: int = Field(1, ge=1)


class AudioMedia(OpenSection):
    """Recordings. `enabled` absent: who can hear is found out. `models` counts before `tools.media.models`."""

    enabled: bool | None = None
    models: tuple[MediaModel, ...] = ()
    preferred_model: str = ""
    language: str = ""
    prompt: str = ""
    max_bytes: int = Field(20 << 20, gt=0)
    max_chars: int | None = Field(None, gt=0)
    timeout_seconds: float = Field(60.0, gt=0)
    scope: Scope = part(Scope)
    attachments: Picked = part(Picked)


class Media(OpenSection):
    """What understands media; `concurrency` is how many are asked at one time."""

    concurrency: int = Field(2, ge=1)
    models: tuple[MediaModel, ...] = ()
    audio: AudioMedia = part(AudioMedia)
