"""Sweeps: a grid of fabrics, planned, simulated and synthesized, with every result kept.

A sweep is described by a TOML file::

    steps = ["plan", "simulate", "synth"]    # what to do; the default is plan alone
    topologies = ["4x4", "6x8", "4x4x4"]
    collectives = ["allgather", "broadcast"]
    algorithms = ["best", "hamiltonian"]     # or ["all"] that know the collective; default best
    ports = [2, 4]                           # these two may be left out
    chunks = [1, 2]
    widths = [8, 32]                         # for simulate and synth; default 32
    flits = [2, 8]                           # the same; default one for each chunk
    targets = ["ecp5-25k", "ice40-hx8k"]     # the rest for synth; there is no default target
    mappings = ["compact", "fast"]           # default compact
    pnr = true                               # default false
    seeds = 3                                # default 1

Each step is done once for every combination of what matters to it: a plan does not depend on the
width, nor a simulation on the device. The results are lines of JSON, one a combination, with a
``status`` of ``done`` or, where no algorithm or length fits, ``misfit`` with a ``reason``. A line
is written as a whole and forced to the disk as soon as it is known. Whoever starts the same sweep
again, after whatever happened, gets the missing lines; a line that is there is never done again.
What failed is told and not kept, so it is tried again. Only one sweep at a time may use a file.
"""

import json
import os
from itertools import product
from pathlib import Path

import filelock

from ..algorithms import CATALOGUE, find
from ..collective import parse_collective
from ..errors import InputError
from ..fpga.synthesis.target import find_target
from ..toolchain.cache import digest
from ..topology import parse_topology

try:
    import tomllib
except ImportError:  # Python 3.10
    import tomli as tomllib  # type: ignore[no-redef]

__all__ = ["Results", "load", "points"]

STEPS = ("plan", "simulate", "synth")

#: Name of a list in the file -> (name in a result, kind of its entries, default, steps it is for).
AXES = {
    "topologies": ("topology", str, None, STEPS),
    "collectives": ("collective", str, None, STEPS),
    "algorithms": ("algorithm", str, ["best"], STEPS),
    "ports": ("ports", int, [None], STEPS),
    "chunks": ("chunks", int, [None], STEPS),
    "widths": ("width", int, [32], STEPS[1:]),
    "flits": ("flits", int, [None], STEPS[1:]),
    "targets": ("target", str, None, STEPS[2:]),
    "mappings": ("mapping", str, ["compact"], STEPS[2:]),
}


def load(path):
    """Read and check the description of a sweep.

    Returns
    -------
    dict
        Everything that the file may hold, with the defaults filled in.

    Raises
    ------
    InputError
        If it cannot be read, or something in it is not valid.
    """
    try:
        with open(path, "rb") as file:
            given = tomllib.load(file)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"Sweep must be a readable TOML file, not {path} ({reason})") from None
    known = ["steps", *AXES, "pnr", "seeds"]
    for name in given:
        if name not in known:
            raise InputError(f"Key of a sweep must be one of {', '.join(known)}, not {name!r}")
    grid: dict = {"steps": _list(given, "steps", str, ["plan"])}
    for step in grid["steps"]:
        if step not in STEPS:
            raise InputError(f"Step must be plan, simulate or synth, not {step!r}")
    for name, (_, kind, default, steps) in AXES.items():
        needed = not set(steps).isdisjoint(grid["steps"])
        grid[name] = _list(given, name, kind, default if needed else default or [])
    for name, kind, usual, word in (
        ("pnr", bool, False, "true or false"),
        ("seeds", int, 1, "a positive integer"),
    ):
        value = grid[name] = given.get(name, usual)
        if type(value) is not kind or (kind is int and value < 1):
            raise InputError(f"Key {name} of a sweep must be {word}, not {value!r}")
    _check_names(grid)
    return grid


def _list(given, name, kind, default):
    """A list of the file, without repetitions."""
    values = given.get(name, default)
    if values is None:
        raise InputError(f"Sweep must have {name}, not leave them out")
    if values is default:
        return values
    word = "strings" if kind is str else "positive integers"
    if (
        not isinstance(values, list)
        or not values
        or any(type(value) is not kind or (kind is int and value < 1) for value in values)
    ):
        raise InputError(f"Key {name} of a sweep must be a list of {word}, not {values!r}")
    return list(dict.fromkeys(values))


def _check_names(grid):
    """Find misspelt names before anything is done."""
    for name in grid["topologies"]:
        parse_topology(name)
    for name in grid["collectives"]:
        parse_collective(name)
    for name in grid["algorithms"]:
        if name not in ("best", "all"):
            find(name)
    for name in grid["targets"]:
        find_target(name)
    for name in grid["mappings"]:
        if name not in ("compact", "fast"):
            raise InputError(f"Mapping must be compact or fast, not {name!r}")


def points(grid):
    """All combinations: a list of dicts of plain values, each a thing to do."""
    found = {}
    for step in grid["steps"]:
        axes = {name: grid[name] for name, axis in AXES.items() if step in axis[3]}
        for values in product(*axes.values()):
            point = {"step": step}
            for name, value in zip(axes, values, strict=True):
                if value is not None:
                    point[AXES[name][0]] = value
            if step == "synth":
                point |= {"pnr": grid["pnr"]} | ({"seeds": grid["seeds"]} if grid["pnr"] else {})
            for each in _algorithms(point):
                found[key(each)] = each
    return list(found.values())


def _algorithms(point):
    """A point for each algorithm that it names."""
    if point["algorithm"] != "all":
        return [point]
    kind = parse_collective(point["collective"]).kind
    names = [entry.name for entry in CATALOGUE if kind in entry.collectives]
    return [point | {"algorithm": name} for name in names]


def key(point):
    """What tells a point from all others."""
    return digest(point)[:16]


class Results:
    """The file of results: lines of JSON that are added and never changed.

    Parameters
    ----------
    path : path
        It is made if need be.

    Raises
    ------
    InputError
        If it cannot be written, is in use, or holds something else.
    """

    def __init__(self, path):
        self._path = Path(path)
        try:
            self._file = open(self._path, "a+b")  # noqa: SIM115 (closed by `__exit__`)
        except OSError as error:
            raise InputError(
                f"Results must be a file that can be written, not {path} ({error.strerror})"
            ) from None
        try:
            self._lock()
            self._rows = self._read()
        except BaseException:
            self._file.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._file.close()

    def __contains__(self, point):
        return key(point) in self._rows

    @property
    def rows(self):
        """The rows, by key."""
        return self._rows

    def add(self, row):
        """Keep a row, unless there is one with its key."""
        if row["key"] in self._rows:
            return
        line = json.dumps(row).encode() + b"\n"
        self._file.write(line)
        self._file.flush()
        os.fsync(self._file.fileno())
        self._rows[row["key"]] = row

    def _lock(self):
        try:
            locked = filelock.lock_descriptor(self._file.fileno(), blocking=False)
        except OSError:
            return  # on this file system files cannot be locked
        if not locked:
            raise InputError(f"Results must not be in use by another sweep, as {self._path} is")

    def _read(self):
        """The rows that are there; half a line at the end is what a sweep died of, and goes."""
        self._file.seek(0)
        text = self._file.read()
        end = text.rfind(b"\n") + 1
        rows = {}
        for number, line in enumerate(text[:end].splitlines(), start=1):
            try:
                row = json.loads(line)
                rows[row["key"]] = row
            except (ValueError, KeyError, TypeError):
                raise InputError(
                    f"Results must be rows of a sweep, not line {number} of {self._path}"
                ) from None
        if end == 0 and text and not text.startswith(b'{"key"'[: len(text)]):
            raise InputError(f"Results must be rows of a sweep, not line 1 of {self._path}")
        self._file.truncate(end)
        return rows
