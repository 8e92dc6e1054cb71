"""Random changes of TOML files that describe sweeps."""

import itertools
import json
import random
from typing import Any

from torusfabric.sweep import grid

from .mutation import changed_bytes, changed_value
from .oracle import Fuzzer

__all__ = ["SweepFuzzer"]

#: Sweeps that the files are made from.
SWEEPS: tuple[dict[str, Any], ...] = (
    {
        "steps": ["plan", "simulate", "synth"],
        "topologies": ["4x4", "2x3"],
        "collectives": ["allgather"],
        "algorithms": ["best", "hamiltonian"],
        "ports": [2, 4],
        "chunks": [1, 2],
        "widths": [8],
        "flits": [2],
        "targets": ["ecp5-25k"],
        "mappings": ["compact"],
        "pnr": True,
        "seeds": 3,
    },
    {"topologies": ["3"], "collectives": ["alltoall:necklace", "allgather,alltoall,allreduce"]},
    {"steps": ["simulate"], "plans": ["mine.json,other.json"], "max_flits": [16]},
)

#: Points of a sweep that are checked.
LOOKED_AT = 100


class SweepFuzzer(Fuzzer):
    """Check that an accepted file gives points that have a step each."""

    name = "sweep"
    weight = 70

    def make(self, draw: random.Random) -> bytes:
        value = draw.choice(SWEEPS)
        if draw.random() < 0.8:
            value = changed_value(value, draw)
        try:
            lines = [f"{key} = {_toml(entry)}" for key, entry in dict(value).items()]
        except (TypeError, ValueError):  # no object any more, or a number of too many digits
            lines = ["seeds = " + "9" * 5000]
        content = "\n".join(lines).encode("utf-8", "surrogatepass")
        return changed_bytes(content, draw) if draw.random() < 0.4 else content

    def run(self, given: bytes) -> None:
        path = self.folder / "file.toml"
        path.write_bytes(given)
        try:
            points = grid.grid_points(grid.read_sweep(path))
            assert all(point["step"] for point in itertools.islice(points, LOOKED_AT))
        finally:
            path.unlink()


def _toml(value: Any) -> str:
    """Return a value in TOML, if TOML has such values."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {_toml(v)}" for key, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value)
