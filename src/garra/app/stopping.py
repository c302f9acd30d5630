"""What ends the gateway: signals, and whoever asks it to begin anew."""

from __future__ import annotations

import asyncio
import signal
from typing import Any


class Stop:
    """The signals that end the gateway. The first asks, the second insists; SIGUSR1 asks it to begin anew.

    `reason` says why it begins anew; `leaving` holds what is handed to the next life, once this one has ended.
    """

    def __init__(self) -> None:
        self.anew = False
        self.reason = ""
        self.leaving: Any = None
        self.asked = asyncio.Event()
        self.insisted = asyncio.Event()

    def listen(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._heard)
        loop.add_signal_handler(signal.SIGUSR1, self.again, "SIGUSR1")

    def again(self, reason: str = "an agent asked, and its owner agreed") -> None:
        """End this process's work; what follows is the same program once more."""
        if not self.asked.is_set():
            self.anew, self.reason = True, reason
        self.asked.set()

    def _heard(self) -> None:
        self.anew = False
        (self.insisted if self.asked.is_set() else self.asked).set()
