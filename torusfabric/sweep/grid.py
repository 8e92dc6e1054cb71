"""Sweeps: a grid of fabrics, planned, simulated and synthesized, with every result kept.

A sweep is described by a TOML file; ``torusfabric sweep --help`` shows one with all keys. With
faults, each topology stands for as many as there are seeds, each with so many links drawn at random
that are out of order, and place and route has one seed. A collective may name its algorithm, and
several may make one fabric, whose modes they are; to these the algorithms of the list do not apply.

Each step is done once for every combination of what matters to it: a plan does not depend on the
width, nor a simulation on the device. Cycles are those of the compiled program, and no simulation
counts others; `Simulated` puts them in place of simulations. The results are lines of JSON, one a
combination, with a ``status`` of ``done`` or, where no algorithm or length fits, ``misfit`` with a
``reason``. Whoever works gets the content of schedule files, and row and result are of that
content. A line is written as a whole and forced to the disk as soon as it is known. Whoever starts
the same sweep again, after whatever happened, gets the missing lines; a line that is there is never
done again. What failed, be it for want of memory, is printed and not kept, so it is tried again.
Only one sweep at a time may use a file.
"""

import math
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Any

from ..algorithms import CATALOGUE, find
from ..collective import parse_collective, split_name, split_names
from ..errors import InputError
from ..fpga.synthesis.family import Mapping
from ..fpga.synthesis.target import find_target
from ..planning import require_results
from ..toolchain.cache import digest
from ..toolchain.reading import listed_files, read_text
from ..toolchain.values import no_such
from ..topology import Topology, parse_topology, with_latency
from .drawn_faults import draw_faults

try:
    import tomllib
except ImportError:  # Python 3.10
    import tomli as tomllib

__all__ = ["AXES", "Axis", "Point", "Simulated", "key", "load", "plan_contents", "points"]

#: A thing to do: plain values by name.
Point = dict[str, Any]

STEPS = ("plan", "cycles", "simulate", "synth")

#: Of the file that describes a sweep.
MOST_BYTES = 2**20

#: Keys within keys, which a sweep has none of; many take a reader of TOML long.
NESTED = re.compile(r"""(?<![\w"'-])(?:[\w"'-]+\s*\.\s*){32}""")

#: More things to do are not worth a try.
MOST_POINTS = 2**20

#: The lists that say how long messages are; a fabric is of an entry of one of them.
LENGTHS = ("flits", "max_flits")

#: Steps that need hardware, and steps that need a device.
BUILT, MAPPED = STEPS[1:], STEPS[3:]

#: Of so many simulations one is in the sample, beside the first of each collective and algorithm.
SAMPLED = 8


class Simulated(Enum):
    """Which simulations of a sweep are carried out; the rest is what the program says of cycles."""

    ALL = "all"
    SAMPLE = "sample"
    NONE = "none"


@dataclass(frozen=True)
class Axis:
    """A list in the description of a sweep.

    Parameters
    ----------
    name : str
        What one of its entries is called in a result.
    entry : type
        Of its entries.
    default : list, optional
        None if it must not be left out.
    steps : tuple of str
        The steps that it matters to.
    planned : bool
        Whether it says what to plan, so that it has no place beside schedule files.
    """

    name: str
    entry: type
    default: list[Any] | None = None
    steps: tuple[str, ...] = STEPS
    planned: bool = False


#: The lists that the file may hold.
AXES = {
    "topologies": Axis("topology", str, planned=True),
    "collectives": Axis("collective", str, planned=True),
    "algorithms": Axis("algorithm", str, ["best"], planned=True),
    "ports": Axis("ports", int, [None], planned=True),
    "chunks": Axis("chunks", int, [None], planned=True),
    "link_latencies": Axis("link_latency", str, [None], planned=True),
    "faults": Axis("faults", int, [None], planned=True),
    "plans": Axis("plan", str),
    "widths": Axis("width", int, [32], BUILT),
    "flits": Axis("flits", int, [None], BUILT),
    "max_flits": Axis("max_flits", int, [None], BUILT),
    "targets": Axis("target", str, None, MAPPED),
    "mappings": Axis("mapping", str, ["compact"], MAPPED),
}


def load(path: str | Path, *, plans: Sequence[str] = ()) -> dict[str, Any]:
    """Read and check the description of a sweep.

    Parameters
    ----------
    path : path
        A TOML file.
    plans : sequence of str
        Schedule files in place of topologies and collectives.

    Returns
    -------
    dict
        Everything that the file may hold, with the defaults filled in.

    Raises
    ------
    InputError
        If it cannot be read, or something in it is not valid.
    """
    text = read_text(path, "Sweep file", most=MOST_BYTES)
    if NESTED.search(text):
        raise InputError(f"Sweep file {path} must have keys of one word, not keys within keys")
    try:
        given = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"Sweep file {path} must be TOML: {error}") from None
    known = ["steps", *AXES, "pnr", "seeds"]
    for name in given:
        if name not in known:
            raise no_such("Key of a sweep", name, known)
    _check_integers(given)
    if plans:
        given["plans"] = list(plans)
    if type(given.get("faults")) is int:
        given["faults"] = [given["faults"]]
    grid = _lists(given)
    pnr, seeds = given.get("pnr", False), given.get("seeds", 1)
    if type(pnr) is not bool:
        raise InputError(f"Key pnr of a sweep must be true or false, not {pnr!r}")
    if type(seeds) is not int or seeds < 1:
        raise InputError(f"Key seeds of a sweep must be a positive integer, not {seeds!r}")
    require_results("seeds", seeds)
    grid |= {"pnr": pnr, "seeds": seeds}
    _check_names(grid)
    return grid


def _check_integers(value: Any, name: str = "") -> None:
    """Refuse integers that TOML need not know; of some that are longer Python makes no text."""
    if isinstance(value, dict | list):
        for key, part in value.items() if isinstance(value, dict) else ((name, v) for v in value):
            _check_integers(part, name or key)
    elif isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise InputError(f"Key {name} of a sweep must have integers of 64 bits, not longer ones")


def _lists(given: dict[str, Any]) -> dict[str, Any]:
    """The lists of the file, those that do not matter empty."""
    grid: dict[str, Any] = {"steps": _list(given, "steps", str, ["plan"])}
    for step in grid["steps"]:
        if step not in STEPS:
            raise no_such("Step", step, STEPS)
    for name, axis in AXES.items():
        if axis.planned and "plans" in given and name in given:
            raise InputError(f"Key {name} of a sweep must be left out with plans")
        needed = not set(axis.steps).isdisjoint(grid["steps"])
        needed &= not (axis.planned if "plans" in given else name == "plans")
        grid[name] = _list(given, name, axis.entry, axis.default if needed else axis.default or [])
    return grid


def _list(given: dict[str, Any], name: str, entry: type, default: list[Any] | None) -> list[Any]:
    """A list of the file, without repetitions."""
    values: Any = given.get(name, default)
    if values is None:
        raise InputError(f"Sweep must have {name}, not leave them out")
    if values is default:
        return default or []
    word = "strings" if entry is str else "positive integers"
    if (
        not isinstance(values, list)
        or not values
        or any(type(value) is not entry for value in values)
        or (entry is int and min(values) < 1)
    ):
        raise InputError(f"Key {name} of a sweep must be a list of {word}, not {values!r}")
    return list(dict.fromkeys(values))


def _check_names(grid: dict[str, Any]) -> None:
    """Find misspelt names before anything is done."""
    topologies = [parse_topology(name) for name in grid["topologies"]]
    for latency in grid["link_latencies"]:
        if latency is not None:
            _check_latency(latency, topologies)
    for each in grid["collectives"]:
        for name in split_names(each):
            named = split_name(name)
            parse_collective(named.collective)
            if named.algorithm:
                find(named.algorithm)
    for name in grid["algorithms"]:
        if name not in ("best", "all"):
            find(name)
    for name in grid["targets"]:
        find_target(name)
    for name in grid["mappings"]:
        Mapping(name)
    for each in grid["plans"]:
        for name in listed_files(each):
            if not os.path.isfile(name):
                raise InputError(f"Plan must be a schedule file, not {name}")


def _check_latency(latency: str, topologies: Sequence[Topology]) -> None:
    """Refuse cycles of links that none of the topologies takes."""
    faults = []
    for topology in topologies:
        try:
            with_latency(topology, latency)
        except InputError as error:
            faults.append(error)
    if faults and len(faults) == len(topologies):
        raise faults[0]


def points(grid: dict[str, Any], simulated: Simulated = Simulated.ALL) -> list[Point]:
    """All combinations, each a thing to do."""
    found: dict[str, Point] = {}
    for step in grid["steps"]:
        for point in _combinations(grid, step):
            drawn, seeds = "faults" in point, grid["seeds"]
            if step == "synth":
                placed = {"seeds": 1 if drawn else seeds} if grid["pnr"] else {}
                point |= {"pnr": grid["pnr"]} | placed
            for seed in range(seeds if drawn else 1):
                faulty = _with_faults(point["topology"], point["faults"], seed) if drawn else {}
                for each in _concrete(point | faulty):
                    found[key(each)] = each
    return list(_sampled(found, simulated).values())


@cache
def _with_faults(topology: str, faults: int, seed: int) -> Point:
    """What many points have: the name of a network with faults, and the seed that draws them."""
    return {"topology": str(draw_faults(parse_topology(topology), faults, seed)), "seed": seed}


def _sampled(points: dict[str, Point], simulated: Simulated) -> dict[str, Point]:
    """Points by their keys, with cycles of the program in place of simulations not carried out.

    Whether a point is drawn depends on its key alone, so that a grid that grows keeps its sample.
    """
    if simulated is Simulated.ALL:
        return points
    found, seen = {}, set()
    for name, point in points.items():
        if point["step"] == "simulate":
            about = tuple(point.get(part) for part in ("plan", "collective", "algorithm"))
            drawn = about not in seen or int(name, 16) % SAMPLED == 0
            seen.add(about)
            if simulated is Simulated.NONE or not drawn:
                point = point | {"step": "cycles"}
                name = key(point)
        found[name] = point
    return found


def _combinations(grid: dict[str, Any], step: str) -> Iterator[Point]:
    """All combinations of what matters to a step."""
    axes = {
        axis.name: grid[name]
        for name, axis in AXES.items()
        if step in axis.steps
        and name not in LENGTHS
        and (not axis.planned if grid["plans"] else name != "plans")
    }
    lengths = _lengths(grid) if step in BUILT else [{}]
    count = math.prod(map(len, (*axes.values(), lengths)))
    count *= grid["seeds"] if any(grid["faults"]) else 1
    if count > MOST_POINTS:
        raise InputError(f"Sweep must have at most {MOST_POINTS} things to {step}, not {count}")
    for *values, length in product(*axes.values(), lengths):
        chosen = zip(axes, values, strict=True)
        yield {"step": step} | {name: value for name, value in chosen if value is not None} | length


def _lengths(grid: dict[str, Any]) -> list[Point]:
    """How long messages are, or may be; nothing where that is left to the planner."""
    given = [{AXES[name].name: value} for name in LENGTHS for value in grid[name] if value]
    return given or [{}]


def _concrete(point: Point) -> list[Point]:
    """A point for each algorithm that it names; that of files with the digest of their content."""
    if "plan" in point:
        return [point | {"plan_digest": _digest_of(_contents(point["plan"]))}]
    first, *others = map(split_name, split_names(point["collective"]))
    if first.algorithm or others:
        return [point | {"algorithm": "best"}]
    if point["algorithm"] != "all":
        return [point]
    kind = parse_collective(first.collective).kind
    names = [entry.name for entry in CATALOGUE if kind in entry.collectives]
    return [point | {"algorithm": name} for name in names]


def plan_contents(point: Point) -> list[bytes]:
    """What the schedule files of a point hold, which is what was there when the sweep began.

    Raises
    ------
    InputError
        If a file cannot be read, or holds something else by now.
    """
    contents = _contents(point["plan"])
    if _digest_of(contents) != point["plan_digest"]:
        raise InputError(f"Plan {point['plan']} must stay as it was when the sweep began")
    return contents


def _contents(plan: str) -> list[bytes]:
    """What the files of a plan hold, compressed as they may be."""
    try:
        return [Path(name).read_bytes() for name in listed_files(plan)]
    except OSError as error:
        raise InputError(f"Plan must be readable, not {plan} ({error.strerror})") from None


def _digest_of(contents: list[bytes]) -> str:
    """The SHA-256 of all, in hexadecimal."""
    return sha256(b"".join(contents)).hexdigest()


def key(point: Point) -> str:
    """What distinguishes a point from all others."""
    return str(digest(point))[:16]
