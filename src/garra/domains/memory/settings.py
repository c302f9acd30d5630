"""What one agent's memory is searched with."""

from __future__ import annotations

from garra.core.memory_rank import Weights
from garra.core.value import frozen
from garra.domains.memory.sources import Places
from garra.domains.memory.sync import Cut

LOCAL = "local"
NONE = "none"


@frozen
class Settings:
    """`provider` makes the vectors: `local`, `none`, or who is asked over the network; `model` names what they are of,
    so that those of another are not compared with them. `least`: how well a hit must fit, from 0 to 1.
    """

    places: Places
    index: str
    provider: str = NONE
    model: str = ""
    cut: Cut = Cut()
    weights: Weights = Weights()
    most: int = 6
    least: float = 0.1
    enabled: bool = True

    @property
    def identity(self) -> str:
        return f"{self.provider}/{self.model}" if self.provider != NONE else ""
