"""What nextpnr says: of its placers, one of which may come to no end, and of the slowest path.

The static placer moves all cells at once for a time, and then looks for a legal place for
each of them. That takes seconds, or comes to no end on a crowded device; nothing is written
meanwhile. So it is stuck when the log has been silent for as long as everything before took, which
is so on a slow machine as on a fast one.
"""

import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...errors import WorkFailed
from ...verilog.design import member_name

__all__ = ["ECP5_PLACERS", "NO_PLACE", "PlacerWatch", "StuckPlacer", "is_placed", "logic_mhz",
           "named_path", "slowest_path", "utilisation"]  # fmt: skip

#: Those for an ECP5, the better one first. Its wires are a fifth shorter: a 4x4
#: engine of two collectives, 32 bits, is routed on an 85F in minutes, where behind the second one
#: it was not in 25.
ECP5_PLACERS = ("static", "heap")

#: Seconds of silence after which a placer may be stuck at the soonest.
SILENCE = 60.0

#: What nextpnr says where it finds no place for a cell, as opposed to a design that is wrong.
NO_PLACE = re.compile(r"[Uu]nable to (find|place)|[Ff]ailed to (find|place|expand)|no BELs remain")

#: What yosys and nextpnr append to the name of a signal for the cell that drives it.
_CELL = re.compile(r"_(TRELLIS_FF|LUT[1-6]|PFUMX|L6MUX21|CCU2C|DPRAM|SB_\w+?|DFF\w*|ALU|MUX2)_.*$")

#: The instance of what is placed, in its harness.
_PREFIX = "dut."


class StuckPlacer(WorkFailed):
    """A placer comes to no end."""


def utilisation(log: str) -> list[tuple[str, int, int]]:
    """Each resource that nextpnr logged, how much of it is used, and of how much."""
    rows = re.findall(r"Info:\s+(\w+):\s*(\d+)/\s*(\d+)\s+\d+%", log)
    return [(name, int(used), int(most)) for name, used, most in rows]


def is_placed(log: str) -> bool:
    """Whether all cells have their places, by the log of nextpnr."""
    return "Routing globals" in log


class PlacerWatch:
    """Raises an error when called while a placer is stuck; to be called every second or so.

    The log that nextpnr writes need not exist yet.
    """

    def __init__(self, log: Path) -> None:
        self._log = log
        self._size = 0
        self._began = self._grown = 0.0

    def __call__(self) -> None:
        """Look at the log once; raises `StuckPlacer`."""
        now, size = time.monotonic(), self._log.stat().st_size if self._log.exists() else 0
        if size != self._size:
            self._began = self._began if self._size else now
            self._size, self._grown = size, now
        silent = now - self._grown
        if not size or silent <= max(SILENCE, self._grown - self._began):
            return
        if not is_placed(self._log.read_text(encoding="utf-8", errors="replace")):
            raise StuckPlacer(
                f"Placer must find a place for all cells, not be stuck (log: {self._log})"
            )


def slowest_path(report: Mapping[str, Any]) -> dict[str, Any] | None:
    """The slowest path from register to register, in the report that nextpnr writes, if any.

    It is ``from`` and ``to``, the cells at its ends; ``logic_ns`` and ``wire_ns``, what the cells
    and the wires take; ``tables``, how many cells lie between.
    """
    paths = _register_paths(report)
    if not paths:
        return None
    path = max(paths, key=lambda steps: sum(step["delay"] for step in steps))
    wire = sum(step["delay"] for step in path if step["type"] == "routing")
    return {
        "from": path[0]["from"]["cell"],
        "to": path[-1]["to"]["cell"],
        "logic_ns": round(sum(step["delay"] for step in path) - wire, 2),
        "wire_ns": round(wire, 2),
        "tables": sum(step["type"] == "logic" for step in path),
    }


def logic_mhz(report: Mapping[str, Any]) -> float | None:
    """The clock rate if the wires of the slowest path from register to register took no time."""
    paths = _register_paths(report)
    delays = [sum(s["delay"] for s in path if s["type"] != "routing") for path in paths]
    return round(1000 / max(delays), 2) if delays and max(delays) > 0 else None


def _register_paths(report: Mapping[str, Any]) -> list[list[dict[str, Any]]]:
    """The steps of each path from register to register."""
    return [
        path["path"]
        for path in report.get("critical_paths", ())
        if path["from"] == path["to"] and "<async>" not in path["from"]
    ]


def named_path(path: Mapping[str, Any], instances: Mapping[str, str]) -> dict[str, Any]:
    """A `slowest_path` with its ends by what instances of the top are, and a sentence about it.

    Examples
    --------
    >>> cells = {"from": "dut.host.node_TRELLIS_FF_Q", "to": "dut.at_2.word_TRELLIS_FF_Q_3"}
    >>> times = {"logic_ns": 0.76, "wire_ns": 3.1, "tables": 1}
    >>> named_path(cells | times, {"host": "host", "at_2": "endpoint of node 2"})["words"]
    'from node of the host to word of the endpoint of node 2: 0.8 ns logic (1 table), 3.1 ns wire'
    """
    ends = [_end(path[key], instances) for key in ("from", "to")]
    tables = f"{path['tables']} table{'' if path['tables'] == 1 else 's'}"
    times = f"{path['logic_ns']:.1f} ns logic ({tables}), {path['wire_ns']:.1f} ns wire"
    return dict(path) | {
        "from": ends[0],
        "to": ends[1],
        "words": f"from {ends[0]} to {ends[1]}: {times}",
    }


def _end(cell: str, instances: Mapping[str, str]) -> str:
    """The signal and the part that a cell belongs to."""
    name, inside = cell.removeprefix(_PREFIX), cell.startswith(_PREFIX)
    part, signal = None, name
    for dot in reversed([*re.finditer(r"\.|$", name)] if inside else []):
        if part := member_name(name[: dot.start()], instances):
            signal = name[dot.end() :]
            break
    signal = _CELL.sub("", signal).split("$")[0].rstrip("._")
    if not inside:
        return f"{signal} of the harness"
    return f"{signal or 'a register'} of the {part}" if part else signal
