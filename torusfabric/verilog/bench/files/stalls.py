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

    def needs_pause(self) -> bool:
        """Return True, with the probability `STALL`, if the next cycle shall be a pause."""
        return self.generator.random() < STALL

    def pause_generator(self) -> Iterator[bool]:
        """Yield a boolean for each cycle, without end: True in pauses, False otherwise."""
        while True:
            yield self.needs_pause()

    def randomize_inputs(self, *names: str) -> None:
        """Set the inputs `names` to random values, as in cycles in which they must not matter."""
        for name in names:
            value = self.generator.getrandbits(self.ports[name]["width"])
            getattr(self.dut, name).value = value
