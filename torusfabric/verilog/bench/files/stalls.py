"""Pauses of random length, with random values on inputs that must not matter meanwhile.

The environment variable `STALL` is the probability of one more cycle of pause: 0 for no pauses.
"""

import os
import random
from collections.abc import Iterator
from typing import Any

__all__ = ["Stalls"]

STALL = float(os.environ.get("STALL") or 0.2)


class Stalls:
    """A source of random pauses; the same `SEED` gives the same pauses."""

    def __init__(self, dut: Any, manifest: dict[str, Any]) -> None:
        self.dut, self.ports = dut, manifest["ports"]
        self.generator = random.Random(f"stalls {os.environ.get('SEED') or 1}")

    def due(self) -> bool:
        """Return True to pause for a cycle."""
        return self.generator.random() < STALL

    def forever(self) -> Iterator[bool]:
        """Yield True for each cycle of a pause, False for all others."""
        while True:
            yield self.due()

    def scramble(self, *names: str) -> None:
        """Set inputs to random values."""
        for name in names:
            value = self.generator.getrandbits(self.ports[name]["width"])
            getattr(self.dut, name).value = value
