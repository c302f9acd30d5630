"""`models`: the providers and the models they offer."""

from typing import Any, Literal

from garra.config.sections.fields import Field, OpenSection, SecretText, Section, part

Api = Literal[
    "openai-completions",
    "openai-responses",
    "openai-chatgpt-responses",
    "openai-codex-responses",
    "anthropic-messages",
    "google-generative-ai",
    "google-vertex",
    "github-copilot",
    "bedrock-converse-stream",
    "mistral-conversations",
    "ollama",
    "pi-messages",
    "azure-openai-responses",
    "local",
]


class Cost(Section):
    """Prices, in US dollars for a million tokens."""

    input: float = 0.0
    output: float = 0.0
    cache_read: float = 0.0
    cache_write: float = 0.0


class CatalogModel(OpenSection):
    """One model of a provider. Windows and limits are in tokens."""

    id: str = Field(min_length=1)
    name: str = Field(min_length=1)
    api: Api | None = None
    base_url: str = ""
    reasoning: bool = False
    input: tuple[str, ...] = ("text",)
    cost: Cost = part(Cost)
    context_window: int | None = Field(None, gt=0)
    context_tokens: int | None = Field(None, gt=0)
    max_tokens: int | None = Field(None, gt=0)
    headers: dict[str, SecretText] = Field(default_factory=dict)
    params: dict[str, Any] = Field(default_factory=dict)
    compat: dict[str, Any] = Field(default_factory=dict)


class AudioForm(Section):
    """That a provider turns recordings into words, in OpenAI's form: `path` below its address, and its model for it."""

    path: str = ""
    model: str = ""


class Timeouts(Section):
    """How long a call may take, in seconds: to connect, to its first token, between two signs of life."""

    connect_seconds: float | None = Field(None, gt=0)
    first_token_seconds: float | None = Field(None, gt=0)
    idle_seconds: float | None = Field(None, gt=0)


class Provider(OpenSection):
    """One model provider: its address, its dialect, its key, its models.

    A provider that is not in the box has a `baseUrl` and must declare its `models` (an empty list will do). `logins`
    sets anew, or adds, ways to log in by their id (`clientId`, `tokenUrl`, …), `catalog` how its server lists models.
    """

    api: Api | None = None
    base_url: str = ""
    api_key: SecretText | None = None
    auth: Literal["api-key", "token", "oauth", "aws-sdk"] | None = None
    auth_header: bool | None = None
    headers: dict[str, SecretText] = Field(default_factory=dict)
    proxy: str = ""
    ca_file: str = ""
    timeout_seconds: float | None = Field(None, gt=0)
    timeouts: Timeouts = part(Timeouts)
    max_tokens: int | None = Field(None, gt=0)
    params: dict[str, Any] = Field(default_factory=dict)
    request: dict[str, Any] = Field(default_factory=dict)
    models: tuple[CatalogModel, ...] = ()
    audio: AudioForm | None = None
    logins: dict[str, dict[str, Any]] = Field(default_factory=dict)
    catalog: str = ""


class Models(Section):
    """Providers by their id; `merge` adds to those in the box, `replace` leaves only these."""

    mode: Literal["merge", "replace"] = "merge"
    providers: dict[str, Provider] = Field(default_factory=dict)
    catalog_refresh: dict[str, Any] = Field(default_factory=dict)
