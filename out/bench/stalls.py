"""Pauses of random length, and random values for what does not count meanwhile.

The environment variable `STALL` says how likely a pause of one more cycle is: 0 for none.
"""

import os
import random
from collections.abc import Iterator
from typing import Any

__all__ = ["Stalls"]

STALL = float(os.environ.get("STALL") or 0.2)


class Stalls:
    """Draws pauses, the same for the same `SEED`."""

    def __init__(self, dut: Any, manifest: dict[str, Any]) -> None:
        self.dut, self.ports = dut, manifest["ports"]
        self.generator = random.Random(f"stalls {os.environ.get('SEED') or 1}")

    def due(self) -> bool:
        """Whether to pause for a cycle."""
        return self.generator.random() < STALL

    def forever(self) -> Iterator[bool]:
        """Whether to pause, cycle by cycle."""
        while True:
            yield self.due()

    def scramble(self, *names: str) -> None:
        """Give inputs any values."""
        for name in names:
            value = self.generator.getrandbits(self.ports[name]["width"])
            getattr(self.dut, name).value = value
