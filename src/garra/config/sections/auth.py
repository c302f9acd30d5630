"""`auth`: which logins of model providers are used, in which order, and how long one rests. No secrets stand here."""

from typing import Literal

from garra.config.sections.fields import Field, OpenSection, Section, part


class AuthProfile(OpenSection):
    """That a login of this name is to be used, and of which kind it is."""

    provider: str = ""
    mode: Literal["api_key", "oauth", "token", "aws-sdk"] | None = None
    email: str = ""
    display_name: str = ""


class Cooldowns(OpenSection):
    """How long a login without credit rests, in hours, and how many logins are tried before the next model."""

    billing_backoff_hours: float = Field(5.0, gt=0)
    billing_backoff_hours_by_provider: dict[str, float] = Field(default_factory=dict)
    billing_max_hours: float = Field(24.0, gt=0)
    rate_limited_profile_rotations: int = Field(1, ge=0)
    overloaded_profile_rotations: int = Field(1, ge=0)


class Auth(Section):
    """`order` names the logins of a provider, the first to be taken first; those it leaves out are not used."""

    profiles: dict[str, AuthProfile] = Field(default_factory=dict)
    order: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    cooldowns: Cooldowns = part(Cooldowns)
