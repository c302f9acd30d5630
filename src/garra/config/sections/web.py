"""`tools.web` and `browser`: what is fetched and searched, and the browser."""

from typing import Annotated

from garra.config.sections.fields import Closed, Field, OpenSection, SecretText, part


class SsrfPolicy(OpenSection):
    """Which hosts may be reached. Only public addresses, unless a host is listed; a blocked one never.

    `allowedHostnames` are exact names or addresses, `blockedHostnames` too, or `*.example.com` for what is below.
    """

    dangerously_allow_private_network: Annotated[bool, Closed(False)] = False
    allowed_hostnames: tuple[str, ...] = ()
    blocked_hostnames: tuple[str, ...] = ()


class WebFetch(OpenSection):
    """The tool `web_fetch`. Sizes are characters and bytes; `cacheTtlMinutes` 0 keeps nothing."""

    enabled: Annotated[bool, Closed(False)] = True
    max_chars: int = Field(20_000, ge=100)
    max_chars_cap: int = Field(20_000, ge=100)
    max_response_bytes: int = Field(750_000, ge=32_000, le=10_000_000)
    timeout_seconds: float = Field(30.0, gt=0)
    cache_ttl_minutes: float = Field(15.0, ge=0)
    max_redirects: int = Field(3, ge=0, le=20)
    readability: bool = True
    user_agent: str = ""
    headers: dict[str, SecretText] = Field(default_factory=dict)
    ssrf_policy: SsrfPolicy = part(SsrfPolicy)


class WebSearch(OpenSection):
    """The tool `web_search`. `provider` absent: the first that has a key; what it needs stands in
    `plugins.entries.<provider>.config.webSearch` (`apiKey`, `baseUrl`), or in its variable.
    """

    enabled: Annotated[bool, Closed(False)] = True
    provider: str = ""
    max_results: int = Field(5, ge=1, le=10)
    timeout_seconds: float = Field(30.0, gt=0)
    cache_ttl_minutes: float = Field(15.0, ge=0)
    api_key: SecretText | None = None


class Web(OpenSection):
    """What is fetched and searched."""

    fetch: WebFetch = part(WebFetch)
    search: WebSearch = part(WebSearch)


class TabCleanup(OpenSection):
    """When tabs are closed that nobody uses, and how many there may be."""

    enabled: bool = True
    idle_minutes: float = Field(120.0, gt=0)
    max_tabs_per_session: int = Field(8, ge=1, le=50)


class Browser(OpenSection):
    """The tool `browser`: off until it is switched on. `executablePath` absent: a Chromium is looked for.

    `idleMinutes` without a call close the whole browser; downloads are `downloadMaxMb` at most.
    """

    enabled: Annotated[bool, Closed(False)] = False
    headless: bool = True
    no_sandbox: Annotated[bool, Closed(False)] = False
    executable_path: str = ""
    idle_minutes: float = Field(10.0, gt=0)
    download_max_mb: float = Field(20.0, gt=0)
    tab_cleanup: TabCleanup = part(TabCleanup)
    ssrf_policy: SsrfPolicy = part(SsrfPolicy)
