"""The clocks of a fabric, and how long their periods are in constraints."""

from collections.abc import Mapping
from typing import Any

__all__ = ["PERIOD", "clocks_of", "crossings", "resets_of"]

#: Of every clock, in nanoseconds: to be replaced by that of a design.
PERIOD = 4.0


def clocks_of(manifest: Mapping[str, Any]) -> list[str]:
    """The clocks, that of the fabric first."""
    ports = manifest["ports"]
    return [name for name, port in ports.items() if port["role"] == "clock"]


def resets_of(manifest: Mapping[str, Any]) -> list[str]:
    """The resets, all of them high while they are active, in the order of their clocks."""
    ports = manifest["ports"]
    return [name for name, port in ports.items() if port["role"] == "reset"]


def crossings(manifest: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The pairs of clocks between which queues take words, both ways."""
    first, *others = clocks_of(manifest)
    return [pair for other in others for pair in ((first, other), (other, first))]
