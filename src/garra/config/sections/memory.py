"""`memory`: what the agent remembers is looked for in, and how."""

from typing import Literal

from garra.config.sections.fields import Field, OpenSection, SecretText, part


class ExtraPath(OpenSection):
    """A folder that is searched too; `pattern` narrows it, by paths below it."""

    path: str
    pattern: str = ""


class MemoryRemote(OpenSection):
    """Where embeddings are made, when not where the provider's chat is; its key is then its own."""

    base_url: str = ""
    api_key: SecretText | None = None
    headers: dict[str, SecretText] = Field(default_factory=dict)


class Mmr(OpenSection):
    """Variety among the results; `lambda` nearer to 1 wants more of what fits best."""

    enabled: bool = True
    weight: float = Field(0.7, ge=0, le=1, alias="lambda")


class TemporalDecay(OpenSection):
    """The newer before the older; files that are no diary do not grow old."""

    enabled: bool = True
    half_life_days: float = Field(30, gt=0)


class Hybrid(OpenSection):
    """How much meaning and words count, and how many times as many rows as wanted are looked at."""

    enabled: bool = True
    vector_weight: float = Field(0.7, ge=0, le=1)
    text_weight: float = Field(0.3, ge=0, le=1)
    candidate_multiplier: int = Field(4, ge=1, le=20)
    mmr: Mmr = part(Mmr)
    temporal_decay: TemporalDecay = part(TemporalDecay)


class MemoryQuery(OpenSection):
    """How many results, and how well they must fit, from 0 to 1."""

    max_results: int = Field(6, ge=1, le=50)
    min_score: float = Field(0.1, ge=0, le=1)
    hybrid: Hybrid = part(Hybrid)


class Chunking(OpenSection):
    """Tokens of a piece, and of what two pieces share."""

    tokens: int = Field(400, ge=50, le=2_000)
    overlap: int = Field(80, ge=0, le=400)


class MemorySearch(OpenSection):
    """Whether and how memory is searched. `provider`: `local` is the small model of the extra `memory`, `none` words
    alone; without one the small model where it is installed.
    """

    enabled: bool = True
    provider: str = ""
    model: str = ""
    sources: tuple[Literal["memory", "sessions"], ...] = ("memory", "sessions")
    extra_paths: tuple[str | ExtraPath, ...] = ()
    remote: MemoryRemote = part(MemoryRemote)
    query: MemoryQuery = part(MemoryQuery)
    chunking: Chunking = part(Chunking)


class Memory(OpenSection):
    """All of memory."""

    search: MemorySearch = part(MemorySearch)
    citations: Literal["auto", "on", "off"] = "auto"
