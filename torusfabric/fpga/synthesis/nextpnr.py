"""Logs and reports of nextpnr: a placer that is stuck, resources in use, and the slowest path.

Users are the synthesis flow and the build of a bitstream.

The static placer moves all cells at once, and then looks for a legal location for each of them.
This search takes seconds, or never ends on a crowded device, and writes nothing meanwhile. So
`PlacerWatch` takes the placer for stuck when the log has been silent for as long as all output
before took, and for at least `SILENT_SECONDS`. Being relative, the rule holds on slow and on fast
machines.
"""

import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...errors import WorkFailed
from ...verilog.design import translate_path

__all__ = ["ECP5_PLACERS", "PLACEMENT_FAILURE", "PlacerWatch", "StuckPlacer", "is_placed",
           "logic_mhz", "describe_path", "slowest_path", "utilisation"]  # fmt: skip

#: Placers for an ECP5, in order of preference. The static placer gives wires that are a fifth
#: shorter. A 4x4 engine of two collectives, 32 bits, was routed on an 85F in minutes; behind the
#: other placer it was not in 25 minutes.
ECP5_PLACERS = ("static", "heap")

#: Least seconds of silence after which a placer may be stuck.
SILENT_SECONDS = 60.0

#: Messages of nextpnr about a cell without a location, unlike those about a faulty design.
PLACEMENT_FAILURE = re.compile(
    r"[Uu]nable to (find|place)|[Ff]ailed to (find|place|expand)|no BELs remain"
)

#: End of a cell's name, which yosys and nextpnr append to the name of the signal that the cell
#: drives.
_CELL = re.compile(r"_(TRELLIS_FF|LUT[1-6]|PFUMX|L6MUX21|CCU2C|DPRAM|SB_\w+?|DFF\w*|ALU|MUX2)_.*$")

#: Path of the placed module in its harness.
_PREFIX = "dut."


class StuckPlacer(WorkFailed):
    """Error for a placer that is stuck: it has written nothing into its log for too long."""


def utilisation(log: str) -> list[tuple[str, int, int]]:
    """Return each resource in a log of nextpnr as (name, number in use, number in the device)."""
    rows = re.findall(r"Info:\s+(\w+):\s*(\d+)/\s*(\d+)\s+\d+%", log)
    return [(name, int(used), int(most)) for name, used, most in rows]


def is_placed(log: str) -> bool:
    """Return True if a log of nextpnr says that all cells have locations."""
    return "Routing globals" in log


class PlacerWatch:
    """A function object that raises an error if a placer is stuck; call it about every second.

    A placer counts as stuck if its log has not grown for too long.

    Parameters
    ----------
    log : Path
        Log of nextpnr, which need not exist yet.
    """

    def __init__(self, log: Path) -> None:
        self._log = log
        self._size = 0
        self._began = self._grown = 0.0

    def __call__(self) -> None:
        """Look at the log once; raise `StuckPlacer` if the placer is stuck."""
        now, size = time.monotonic(), self._log.stat().st_size if self._log.exists() else 0
        if size != self._size:
            self._began = self._began if self._size else now
            self._size, self._grown = size, now
        silent = now - self._grown
        if not size or silent <= max(SILENT_SECONDS, self._grown - self._began):
            return
        if not is_placed(self._log.read_text(encoding="utf-8", errors="replace")):
            raise StuckPlacer(
                f"Placer must find a place for all cells, not be stuck (log: {self._log})"
            )


def slowest_path(report: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the slowest path from register to register in a report of nextpnr; None if none.

    Returns
    -------
    dict or None
        ``from`` and ``to``: names of the cells at the ends. ``logic_ns`` and ``wire_ns``: delay of
        all cells and of all wires on the path, in ns. ``tables``: number of logic cells between
        the ends.
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
    """Return the clock rate that the fabric would reach if wires had no delay, in MHz.

    It follows from the path between registers with the most delay in cells. None without a path.

    Parameters
    ----------
    report : dict
        Report of nextpnr, as parsed from its JSON.
    """
    paths = _register_paths(report)
    delays = [sum(s["delay"] for s in path if s["type"] != "routing") for path in paths]
    return round(1000 / max(delays), 2) if delays and max(delays) > 0 else None


def _register_paths(report: Mapping[str, Any]) -> list[list[dict[str, Any]]]:
    """Return, for each clock, the slowest path from a register to a register.

    A path is the list of its parts, cells and wires, as in the report of nextpnr.
    """
    return [
        path["path"]
        for path in report.get("critical_paths", ())
        if path["from"] == path["to"] and "<async>" not in path["from"]
    ]


def describe_path(path: Mapping[str, Any], instances: Mapping[str, str]) -> dict[str, Any]:
    """Return a copy of the result of `slowest_path` with readable names of both ends.

    It also has the entry ``words``, a text about the path.

    Parameters
    ----------
    path : dict
        Result of `slowest_path`.
    instances : dict of str to str
        Patterns for `translate_path`: instance of the top -> part of the fabric.

    Examples
    --------
    >>> cells = {"from": "dut.host.node_TRELLIS_FF_Q", "to": "dut.at_2.word_TRELLIS_FF_Q_3"}
    >>> times = {"logic_ns": 0.76, "wire_ns": 3.1, "tables": 1}
    >>> describe_path(cells | times, {"host": "host", "at_2": "endpoint of node 2"})["words"]
    'from node of the host to word of the endpoint of node 2: 0.8 ns logic (1 table), 3.1 ns wire'
    """
    ends = [_path_end(path[key], instances) for key in ("from", "to")]
    tables = f"{path['tables']} table{'' if path['tables'] == 1 else 's'}"
    times = f"{path['logic_ns']:.1f} ns logic ({tables}), {path['wire_ns']:.1f} ns wire"
    return dict(path) | {
        "from": ends[0],
        "to": ends[1],
        "words": f"from {ends[0]} to {ends[1]}: {times}",
    }


def _path_end(cell: str, instances: Mapping[str, str]) -> str:
    """Return the text for the end of a path, such as "word of the endpoint of node 2".

    `cell` is the name of the register in the report. `instances` maps names of instances to parts
    of the fabric, such as ``at_2`` to ``endpoint of node 2``.
    """
    name, inside = cell.removeprefix(_PREFIX), cell.startswith(_PREFIX)
    part, signal = None, name
    for dot in reversed([*re.finditer(r"\.|$", name)] if inside else []):
        if part := translate_path(name[: dot.start()], instances):
            signal = name[dot.end() :]
            break
    signal = _CELL.sub("", signal).split("$")[0].rstrip("._")
    if not inside:
        return f"{signal} of the harness"
    return f"{signal or 'a register'} of the {part}" if part else signal
