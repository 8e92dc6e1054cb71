"""The description of a sweep, and the points of its grid.

A *sweep* plans, simulates and synthesizes many fabrics. Its description is a TOML file with a list
for each axis of the grid, such as topologies and widths; ``torusfabric sweep --help`` shows a file
with all keys. A *point* is one step (plan, cycles, simulate or synth) with a value for each axis
that matters to this step. A plan does not depend on the width, so it is computed once for all
widths.

- Collectives: an entry may name its algorithm, or list several collectives that are the modes of
  one fabric. The list of algorithms does not apply to such an entry.
- Faults: with ``faults = n`` and s seeds, each topology stands for s networks, each with n random
  broken links. Place and route then uses one seed.
- Traffic and counts: a file of messages belongs to patterns, a file of lengths to the collectives
  that may have unequal lengths. The axis does not apply to other collectives, and messages of
  unequal lengths have no axis of lengths.
- Cycles: the step ``cycles`` takes them from the compiled program. A simulation counts the same
  cycles, so `SimulationChoice` replaces simulations by this step.

The file of results has a line of JSON, a *row* (not a row of a program), for each point:

- Its ``status`` is ``done``, or ``misfit`` with a ``reason`` if no algorithm or length fits.
- A row is written as a whole, and forced to the disk, as soon as it is known.
- A sweep that is started again computes only the missing rows.
- A failed point, such as one that runs out of memory, is printed but has no row, so that the next
  start tries it again.
- If a point has files, its row holds for the content of the files, not for their names. Workers
  receive the content.
- Only one sweep at a time may use a file of results.
"""

import math
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache, lru_cache, partial
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Any

from ..algorithms import CATALOGUE, find_algorithm
from ..collective import KINDS_WITH_LENGTHS, Collective, parse_collective, split_name, split_names
from ..errors import InputError
from ..fpga.synthesis.family import Mapping
from ..fpga.synthesis.target import find_target
from ..planning import require_result_memory
from ..toolchain.cache import digest
from ..toolchain.reading import read_text, split_file_names
from ..toolchain.values import unknown_name_error
from ..topology import Topology, parse_topology, with_latency
from .random_faults import break_random_links

try:
    import tomllib
except ImportError:  # Python 3.10
    import tomli as tomllib

__all__ = ["AXES", "Axis", "Point", "SimulationChoice", "point_key", "read_sweep", "file_contents",
           "grid_points"]  # fmt: skip

#: A point of the grid: the step and the value of each axis, by name, as JSON values.
Point = dict[str, Any]

STEPS = ("plan", "cycles", "simulate", "synth")

#: Largest accepted description of a sweep, in bytes.
MOST_BYTES = 2**20

#: A deeply dotted key, ``a.b.c..``. A sweep has no nested keys, and a long one is slow to parse.
DEEP_KEY = re.compile(r"""(?<![\w"'-])(?:[\w"'-]+\s*\.\s*){32}""")

#: Most points of a sweep.
MOST_POINTS = 2**20

#: Axes for the length of messages. A point has a value of one of them.
LENGTH_AXES = ("flits", "max_flits")

#: Axes whose values name files.
FILE_AXES = ("plan", "traffic", "counts")

#: Steps that need hardware, and steps that need a device.
BUILT_STEPS, MAPPED_STEPS = STEPS[1:], STEPS[3:]

#: The sample has one in `SAMPLE_RATIO` simulations, and the first of each collective and algorithm.
SAMPLE_RATIO = 8


class SimulationChoice(Enum):
    """Choice of the simulations that a sweep runs: all, a sample, or none.

    For a simulation that is left out, the cycles are taken from the compiled program (step
    ``cycles``).
    """

    ALL = "all"
    SAMPLE = "sample"
    NONE = "none"


@dataclass(frozen=True)
class Axis:
    """An axis of the grid of a sweep: a list in its description, such as the list of widths.

    Parameters
    ----------
    name : str
        Key of the axis in a point (a step, with a value of each axis) and in its row of results.
    entry : type
        Type of the values.
    default : list, optional
        Values if the description has no such list; None if the list is required.
    steps : tuple of str
        Steps (plan, cycles, simulate, synth) whose result depends on the axis.
    planned : bool
        True if the axis is an input of planning. With schedule files, such an axis is an error.
    """

    name: str
    entry: type
    default: list[Any] | None = None
    steps: tuple[str, ...] = STEPS
    planned: bool = False


#: The axes, by their keys in the description of a sweep.
AXES = {
    "topologies": Axis("topology", str, planned=True),
    "collectives": Axis("collective", str, planned=True),
    "algorithms": Axis("algorithm", str, ["best"], planned=True),
    "ports": Axis("ports", int, [None], planned=True),
    "chunks": Axis("chunks", int, [None], planned=True),
    "link_latencies": Axis("link_latency", str, [None], planned=True),
    "faults": Axis("faults", int, [None], planned=True),
    "traffic": Axis("traffic", str, [None], planned=True),
    "counts": Axis("counts", str, [None], planned=True),
    "plans": Axis("plan", str),
    "widths": Axis("width", int, [32], BUILT_STEPS),
    "flits": Axis("flits", int, [None], BUILT_STEPS),
    "max_flits": Axis("max_flits", int, [None], BUILT_STEPS),
    "targets": Axis("target", str, None, MAPPED_STEPS),
    "mappings": Axis("mapping", str, ["compact"], MAPPED_STEPS),
}


def read_sweep(path: str | Path, *, plans: Sequence[str] = ()) -> dict[str, Any]:
    """Read and check the description of a sweep, which plans, simulates or synthesizes fabrics.

    Parameters
    ----------
    path : path
        A TOML file.
    plans : sequence of str
        Schedule files in place of topologies and collectives.

    Returns
    -------
    dict
        The grid: all keys that a description may have, with defaults filled in. Most of them are
        lists of values, such as ``widths``.

    Raises
    ------
    InputError
        If the file cannot be read, or a key or a value is invalid.
    """
    text = read_text(path, "Sweep file", most=MOST_BYTES)
    if DEEP_KEY.search(text):
        raise InputError(
            f"Sweep file {path} must have keys of one word, not tables or keys with dots"
        )
    try:
        given = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"Sweep file {path} must be TOML: {error}") from None
    known = ["steps", *AXES, "pnr", "seeds"]
    for name in given:
        if name not in known:
            raise unknown_name_error("Key of a sweep", name, known)
    _check_integers(given)
    if plans:
        given["plans"] = list(plans)
    if type(given.get("faults")) is int:
        given["faults"] = [given["faults"]]
    grid = _parse_grid(given)
    pnr, seeds = given.get("pnr", False), given.get("seeds", 1)
    if type(pnr) is not bool:
        raise InputError(f"Key pnr of a sweep must be true or false, not {pnr!r}")
    if type(seeds) is not int or seeds < 1:
        raise InputError(f"Key seeds of a sweep must be a positive integer, not {seeds!r}")
    require_result_memory("seeds", seeds)
    grid |= {"pnr": pnr, "seeds": seeds}
    _check_names(grid)
    return grid


def _check_integers(value: Any, name: str = "") -> None:
    """Raise an error for an integer of more than 64 bits in a description of a sweep.

    Lists and tables in `value` are searched. The message contains `name`, or the outermost key
    inside `value`. Why: TOML has no such integers, and Python refuses to convert very long ones to
    text, which a later error message would need.
    """
    if isinstance(value, dict | list):
        for key, part in value.items() if isinstance(value, dict) else ((name, v) for v in value):
            _check_integers(part, name or key)
    elif isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise InputError(f"Key {name} of a sweep must have integers of 64 bits, not longer ones")


def _parse_grid(given: dict[str, Any]) -> dict[str, Any]:
    """Return the grid of a sweep: the list ``steps``, and a list of values for each axis.

    An axis is, for example, ``topologies`` or ``widths``. `given` has the keys of the TOML file,
    and the schedule files of ``--plan``. The list of an axis that matters to none of the steps may
    be empty.
    """
    grid: dict[str, Any] = {"steps": _parse_list(given, "steps", str, ["plan"])}
    for step in grid["steps"]:
        if step not in STEPS:
            raise unknown_name_error("Step", step, STEPS)
    for name, axis in AXES.items():
        if axis.planned and "plans" in given and name in given:
            raise InputError(
                f"Key {name} and key plans of a sweep exclude each other; leave one of them out"
            )
        needed = not set(axis.steps).isdisjoint(grid["steps"])
        needed &= not (axis.planned if "plans" in given else name == "plans")
        grid[name] = _parse_list(
            given, name, axis.entry, axis.default if needed else axis.default or []
        )
    return grid


def _parse_list(
    given: dict[str, Any], name: str, entry: type, default: list[Any] | None
) -> list[Any]:
    """Return the list under the key `name` of a sweep's description, without repetitions.

    `given` has all keys of the description. Values that are not of the type `entry` are refused. If
    the key is missing, the result is `default`; if that is None, the key is required.
    """
    values: Any = given.get(name, default)
    if values is None:
        raise InputError(f"The sweep lacks the key {name}; add it, as a list")
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
    """Raise an error for a misspelt name, such as an unknown algorithm, before any work starts.

    `grid` has the list of values of each axis, as `_parse_grid` returns it.
    """
    topologies = [parse_topology(name) for name in grid["topologies"]]
    for latency in grid["link_latencies"]:
        if latency is not None:
            _require_one(partial(with_latency, latency=latency), topologies)
    for key in ("traffic", "counts", "plans"):
        for name in (name for each in grid[key] if each for name in split_file_names(each)):
            if not os.path.isfile(name):
                what = "a schedule file" if key == "plans" else "a file"
                raise InputError(f"{key.capitalize().removesuffix('s')} must be {what}, not {name}")
    for each in grid["collectives"]:
        for name in split_names(each):
            named = split_name(name)
            traffic = grid["traffic"][0] if named.collective.startswith("pattern") else None
            if named.collective == "pattern" and traffic is None:
                raise InputError("The sweep lacks the key traffic; add it, as a list of files")
            file = traffic and split_file_names(traffic)[0]
            parse = partial(parse_collective, named.collective, traffic=file)
            if file or "{" in named.collective:  # nodes may have names
                _require_one(parse, topologies)
            else:
                parse()
            if named.algorithm:
                find_algorithm(named.algorithm)
    for name in grid["algorithms"]:
        if name not in ("best", "all"):
            find_algorithm(name)
    for name in grid["targets"]:
        find_target(name)
    for name in grid["mappings"]:
        Mapping(name)


def _require_one(check: Callable[..., object], topologies: Sequence[Topology]) -> None:
    """Raise the first error of a function, called with ``topology=``, if no topology fits it."""
    faults = []
    for topology in topologies:
        try:
            check(topology=topology)
        except InputError as error:
            faults.append(error)
    if faults and len(faults) == len(topologies):
        raise faults[0]


def grid_points(
    grid: dict[str, Any], simulated: SimulationChoice = SimulationChoice.ALL
) -> list[Point]:
    """Return all points of a grid, each once.

    A point is one step (plan, cycles, simulate or synth) with a value for each axis that matters to
    it, such as ``{"step": "plan", "topology": "4x4", "collective": "allgather", ..}``.

    Parameters
    ----------
    grid : dict
        The grid, as `read_sweep` returns it.
    simulated : SimulationChoice
        The simulations to run.
    """
    found: dict[str, Point] = {}
    for step in grid["steps"]:
        for point in _axis_combinations(grid, step):
            drawn, seeds = "faults" in point, grid["seeds"]
            if step == "synth":
                placed = {"seeds": 1 if drawn else seeds} if grid["pnr"] else {}
                point |= {"pnr": grid["pnr"]} | placed
            for seed in range(seeds if drawn else 1):
                faulty = (
                    _random_fault_part(point["topology"], point["faults"], seed) if drawn else {}
                )
                for each in _expand_point(point | faulty):
                    found[point_key(each)] = each
    return list(_sample_simulations(found, simulated).values())


@cache
def _random_fault_part(topology: str, faults: int, seed: int) -> Point:
    """Return two entries of a point: a network with random broken links, and their seed.

    For example ``{"topology": "4x4!0:+0", "seed": 2}``, for 1 as `faults`. `topology` is the
    network without these faults.
    """
    return {
        "topology": str(break_random_links(parse_topology(topology), faults, seed)),
        "seed": seed,
    }


def _sample_simulations(points: dict[str, Point], simulated: SimulationChoice) -> dict[str, Point]:
    """Replace simulations outside of a sample by predictions; return all points by their keys.

    A point is a step with a value for each axis. A point of the step ``simulate`` outside of the
    sample gets the step ``cycles``, which takes the cycles from the compiled program. `simulated`
    says if the sample has all simulations, some, or none. The sample has the first simulation of
    each collective with each algorithm, and others by their keys. Why keys: if the user adds values
    to the grid, these simulations stay in the sample.
    """
    if simulated is SimulationChoice.ALL:
        return points
    found, seen = {}, set()
    for name, point in points.items():
        if point["step"] == "simulate":
            about = tuple(point.get(part) for part in ("plan", "collective", "algorithm"))
            drawn = about not in seen or int(name, 16) % SAMPLE_RATIO == 0
            seen.add(about)
            if simulated is SimulationChoice.NONE or not drawn:
                point = point | {"step": "cycles"}
                name = point_key(point)
        found[name] = point
    return found


def _axis_combinations(grid: dict[str, Any], step: str) -> Iterator[Point]:
    """Yield the points of a step: all combinations of the values of the axes that matter to it.

    A point is a dictionary, such as ``{"step": "plan", "topology": "4x4", ..}``. `grid` has the
    list of each axis, as `_parse_grid` returns it.
    """
    axes = {
        axis.name: grid[name]
        for name, axis in AXES.items()
        if step in axis.steps
        and name not in LENGTH_AXES
        and (not axis.planned if grid["plans"] else name != "plans")
    }
    lengths = _length_choices(grid) if step in BUILT_STEPS else [{}]
    count = math.prod(map(len, (*axes.values(), lengths)))
    count *= grid["seeds"] if any(grid["faults"]) else 1
    if count > MOST_POINTS:
        raise InputError(
            f"Sweep must have at most {MOST_POINTS} things to {step}, not {count}; shorten its "
            "lists"
        )
    for *values, length in product(*axes.values(), lengths):
        chosen = zip(axes, values, strict=True)
        yield {"step": step} | {name: value for name, value in chosen if value is not None} | length


def _length_choices(grid: dict[str, Any]) -> list[Point]:
    """Return each message length of the grid as entries of a point, such as ``{"flits": 4}``.

    If the grid has no lengths, the result is a list with one empty dictionary.
    """
    given = [{AXES[name].name: value} for name in LENGTH_AXES for value in grid[name] if value]
    return given or [{}]


def _expand_point(point: Point) -> list[Point]:
    """Replace general values of a point, such as ``all``; return the points for which it stands.

    A point is a step of a sweep with a value for each axis.

    - With the algorithm ``all``, the result has a point for each algorithm of the collective.
    - A collective that names its algorithm, or several collectives, get the algorithm ``best``,
      because the list of algorithms in the grid does not apply to them.
    - A pattern keeps its file of messages, and a collective whose messages may have unequal lengths
      its file of lengths. If the lengths are unequal, the point has no other length.
    - A point with files gets the digest of their content.
    """
    if "plan" in point:
        return [_with_digest(point)]
    point = _with_digest(_drop_useless_axes(point))
    first, *others = map(split_name, split_names(point["collective"]))
    if first.algorithm or others:
        return [point | {"algorithm": "best"}]
    if point["algorithm"] != "all":
        return [point]
    kind = _kind_of(first.collective)
    names = [entry.name for entry in CATALOGUE if kind in entry.collectives]
    return [point | {"algorithm": name} for name in names]


#: The axes that decide the collective of a point.
_COLLECTIVE_AXES = ("topology", "collective", "traffic", "counts")


@lru_cache(maxsize=256)
def _parse_collective(
    topology: str, collective: str, traffic: str | None, counts: str | None
) -> Collective | None:
    """Return the collective of a point; None if there are several, or if it does not fit."""
    try:
        name = split_name(collective).collective
        return parse_collective(
            name, topology=parse_topology(topology), traffic=traffic, counts=counts
        )
    except InputError:
        return None


def _kind_of(name: str) -> str:
    """Return the kind of the collective with a name; its groups do not matter."""
    base = name.partition("@")[0]
    return "pattern" if base == "pattern" else parse_collective(base).kind


def _drop_useless_axes(point: Point) -> Point:
    """Return a point without the values that have no meaning for its collective."""
    names = [split_name(name).collective for name in split_names(point["collective"])]
    kinds = {*map(_kind_of, names)}
    useless = set[str]()
    if "pattern" not in kinds:
        useless.add("traffic")
    if kinds.isdisjoint(KINDS_WITH_LENGTHS):
        useless.add("counts")
    kept = {name: value for name, value in point.items() if name not in useless}
    collective = _parse_collective(*(kept.get(name) for name in _COLLECTIVE_AXES))
    if collective is not None and collective.longest_flits is not None:
        kept = {name: value for name, value in kept.items() if name not in LENGTH_AXES}
    return kept


def file_contents(point: Point) -> list[bytes]:
    """Return the content of each file of a point (a step of a sweep, with its values).

    Files of schedules come first, then those of messages, then those of lengths.

    Raises
    ------
    InputError
        If a file cannot be read, or has changed since the sweep began.
    """
    contents, digests = _read_files(point), _with_digest(point)
    for name, value in digests.items():
        if point.get(name) != value:
            what = name.removesuffix("_digest")
            raise InputError(
                f"{what.capitalize()} {point[what]} was changed after the sweep began; write the "
                "results to a new file"
            )
    return [content for each in contents.values() for content in each]


def _with_digest(point: Point) -> Point:
    """Return a point with the SHA-256 of the files of each axis, in hexadecimal."""
    contents = _read_files(point)
    return point | {
        f"{axis}_digest": sha256(b"".join(each)).hexdigest() for axis, each in contents.items()
    }


def _read_files(point: Point) -> dict[str, list[bytes]]:
    """Return the bytes of the files of a point, by their axis.

    A value names one file, or several, separated by commas. Compressed files are not unpacked.
    """
    found: dict[str, list[bytes]] = {}
    for axis in (axis for axis in FILE_AXES if axis in point):
        try:
            found[axis] = [Path(name).read_bytes() for name in split_file_names(point[axis])]
        except OSError as error:
            what = f"{axis.capitalize()} {point[axis]}"
            raise InputError(f"{what} cannot be read ({error.strerror})") from None
    return found


def point_key(point: Point) -> str:
    """Return the key of a point (a step of a sweep, with a value for each axis).

    It is the first 16 hexadecimal digits of a digest of the point.
    """
    return str(digest(point))[:16]
