"""Images for fabrics with loadable tables, and repair of such a fabric after a link fault.

An *image* is the contents of the tables: the programs of all modes. `image` makes an image for
given collectives. `repair` makes an image that avoids broken links, and tests it in simulation. The
*room* of a fabric is the sizes of its tables, which limit images. The commands ``image`` and
``repair`` and the library call these functions; `torusfabric.adapters.loading` holds the format of
images and the hardware that loads them.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..adapters.loading.choose import resolve_loadable
from ..adapters.loading.fitting import loadable_modes
from ..adapters.loading.image import (
    Image,
    LoadedFabric,
    ModeRequest,
    mode_entry,
    read_fabric,
    read_image,
)
from ..adapters.loading.room import Room
from ..analysis.check import check
from ..errors import InputError
from ..planning import make_selection
from ..program import Program
from ..rtl import fabric as rtl
from ..rtl.netlist import Constant, Part, Parts
from ..schedule import Schedule
from ..simulation.engines import longest_job
from ..simulation.simulate import simulate
from ..toolchain.public import public
from ..toolchain.values import parse_non_negative_int
from .fabric import Fabric

if TYPE_CHECKING:
    from ..simulation.report import SimulationReport

__all__ = ["Image", "RepairResult", "image_around_faults", "image", "read_fabric", "read_image",
           "repair", "self_check"]  # fmt: skip


@public
def image(
    fabric: Fabric | LoadedFabric | str | PathLike[str],
    collectives: str | Schedule | Program | Sequence[str | Schedule | ModeRequest],
    *,
    onto: Image | str | PathLike[str] | None = None,
    mode: int | None = None,
    **options: Any,
) -> Image:
    """Make an image by which a fabric with loadable tables executes collectives, one in each mode.

    Parameters
    ----------
    fabric : Fabric, LoadedFabric, str or Path
        A fabric with ``tables="ram"``, or the path of its manifest.
    collectives : str, Schedule or sequence of them, or Program
        The collective of each mode. A name is planned by the quickest algorithm that fits the
        tables. A pair (schedules, any_root) has the schedules of all forms of a mode, and True if
        each run chooses the root. A program stands for all of its modes. All schedules are checked.
    onto : Image, str or Path, optional
        The image that the fabric holds now. The result then has only the new modes, and can be
        loaded while runs use the others.
    mode : int, optional
        Number of the first mode that is filled, with `onto`; by default one more than the last mode
        of `onto`.
    **options
        Options for names, as of `torusfabric.plan`: `algorithm`, `broken_links`, .. and `root`,
        which may be ``any``.

    Returns
    -------
    Image
        The image, with the words to load in `words`.

    Raises
    ------
    InputError
        If a collective does not fit the tables; the message names the limit.
    ScheduleError
        If a schedule does not pass its check.

    Examples
    --------
    By the first image the fabric executes an all-to-all, which takes 19 cycles for messages of four
    flits. An image with a scatter has 125 words; a further image adds a gather, as mode 1.

    >>> import torusfabric as tf
    >>> fabric = tf.Fabric(tf.compile(tf.plan("3x3", "allgather"), max_flits=4), tables="ram")
    >>> found = tf.image(fabric, "alltoall")
    >>> found.program.cycles(4), found.facts[0]["algorithm"]
    (19, 'matching')
    >>> scatter = tf.compile(tf.plan("3x3", "scatter", algorithm="matching"), max_flits=4)
    >>> first = tf.image(fabric, scatter)
    >>> len(first.words), tf.image(fabric, "gather", onto=first).fills
    (125, range(1, 2))
    """
    there = _fabric_facts(fabric)
    room, mode = there.room, None if mode is None else parse_non_negative_int("Mode", mode)
    listed: Sequence[str | Schedule | ModeRequest]
    if isinstance(collectives, Program):
        found = loadable_modes(collectives, room)
        listed = [(each.schedules, each.any_root) for each in found]
    else:
        listed = [collectives] if isinstance(collectives, str | Schedule) else collectives
    modes = [_plan_mode(room, one, **options) for one in listed]
    if not modes:
        raise InputError("An image needs at least one collective, for example alltoall")
    for schedules, _ in modes:
        for schedule in schedules:
            check(schedule)
    if onto is None:
        return Image.from_schedules(room, there.width, modes)
    held = onto if isinstance(onto, Image) else read_image(onto, room, there.width)
    return held.with_modes(modes, mode)


def _plan_mode(
    room: Room, one: str | Schedule | ModeRequest, root: int | str | None = None, **options: Any
) -> ModeRequest:
    """Plan one mode of an image; return its schedules, and True if each run chooses the root.

    There is a schedule for each form of the mode. `one` is the collective of the mode: the name of
    a collective is planned, by the quickest algorithms whose schedules fit tables of the sizes
    `room`. A schedule is used as it is, and a pair (schedules, any_root) is returned unchanged.
    """
    if not isinstance(one, str):
        return ((one,), False) if isinstance(one, Schedule) else one
    any_root = root == "any"
    selection = make_selection(room.topology, one, root=0 if any_root else root, **options)
    roots = selection.collective.groups(room.topology).group_size if any_root else 1
    operators = room.parsed_operators()
    found = resolve_loadable(selection, room.flits, operators, room, roots=roots)
    return [one.planned for one in found if one.planned], any_root


def _fabric_facts(fabric: Fabric | LoadedFabric | str | PathLike[str]) -> LoadedFabric:
    """Return the facts by which images are made: sizes of the tables, width, built-in modes.

    The built-in modes are those that the fabric was built with. `fabric` may be the fabric, the
    path of its manifest, or the facts themselves.
    """
    if isinstance(fabric, LoadedFabric):
        return fabric
    if not isinstance(fabric, rtl.Fabric):
        return read_fabric(fabric)
    if fabric.tables is None:
        raise InputError(
            "The tables of this fabric are fixed (rom), so it takes no image; build it with "
            "tables ram"
        )
    modes = [*map(mode_entry, fabric.program.modes)]
    return LoadedFabric(fabric.tables.room, fabric.width, modes)


def image_around_faults(there: LoadedFabric, broken_links: Sequence[str] = ()) -> Image:
    """Plan the built-in modes of a fabric again, around broken links; return them as an image.

    `there` has the facts of the fabric: sizes of its tables, width, and built-in modes. A link is
    written as for `repair`, such as ``0:+1``.
    """
    around = {"broken_links": [*broken_links]}
    modes = [
        _plan_mode(there.room, name, root, **around, **dict(*listed))
        for name, root, *listed in there.modes
    ]
    return image(there, modes)


class RepairResult(NamedTuple):
    """An image that avoids broken links, its cost, and the result of its test.

    Parameters
    ----------
    image : Image
        The image to load.
    seconds : float
        Wall-clock seconds to plan around the fault, to check, and to make the image.
    load_cycles : int
        Cycles to load the image, one word a cycle.
    check_cycles : int
        Cycles of the test runs, one in each mode with the longest messages.
    report : SimulationReport
        Report of the test runs.
    """

    image: Image
    seconds: float
    load_cycles: int
    check_cycles: int
    report: SimulationReport


@public
def repair(
    fabric: Fabric | str | PathLike[str],
    *,
    broken_links: Sequence[str],
    engine: str = "auto",
) -> RepairResult:
    """Make an image that executes the built-in modes of a fabric around broken links, and test it.

    For the test, a fabric with these links cut is simulated. The simulation loads the image through
    the load port, the signals by which a fabric receives images, and runs every mode once.

    Parameters
    ----------
    fabric : Fabric, str or Path
        A fabric with ``tables="ram"``, or the path of its manifest.
    broken_links : sequence of str
        Broken links, each ``NODE:PORT`` as for `torusfabric.plan`.
    engine : str
        Name of the simulator, as for `torusfabric.simulate`.

    Returns
    -------
    RepairResult
        The image, seconds and cycles, and the report of the test.

    Raises
    ------
    InputError
        If no schedule around the broken links fits the tables.
    WorkFailed
        If a simulated node receives a wrong word.

    Examples
    --------
    With the image the fabric works in spite of a broken link: no received word is wrong.

    >>> import torusfabric as tf
    >>> plan = tf.plan("3x3", "broadcast", algorithm="spanning-tree")
    >>> fabric = tf.Fabric(tf.compile(plan, max_flits=4), tables="ram")
    >>> tf.repair(fabric, broken_links=["0:+0"]).report.words_wrong
    0
    """
    began = time.perf_counter()
    made = image_around_faults(_fabric_facts(fabric), broken_links)
    words = len(made.words)
    seconds = time.perf_counter() - began
    report = self_check(made, engine, broken_links)
    return RepairResult(made, seconds, words, report.cycles, report)


def self_check(
    made: Image, engine: str = "auto", broken_links: Sequence[str] = ()
) -> SimulationReport:
    """Simulate an image: build a fabric for it with empty tables, load it, and run every mode once.

    Each run has messages of the largest length. The report of the runs is returned.

    Parameters
    ----------
    made : Image
        The image to load.
    engine : {"auto", "amaranth", "compiled"}
        Name of the simulator; "auto" chooses one.
    broken_links : sequence of str
        Links that are cut in the simulation, such as ``0:+1``.
    """
    fabric = without_links(Fabric.holding(made, empty=True), broken_links)
    jobs = [longest_job(fabric, mode) for mode in range(len(fabric.program.modes))]
    report: SimulationReport = simulate(fabric, jobs=jobs, engine=engine)
    return report


def without_links(fabric: rtl.Fabric, broken_links: Sequence[str]) -> rtl.Fabric:
    """Return a copy of a fabric in which broken links carry constant zeros, in both directions.

    `broken_links` are written as for `repair`, such as ``0:+1``.
    """
    whole, width, netlist = fabric.program.topology, fabric.width, fabric.netlist
    faulty = make_selection(whole, "allgather", broken_links=[*broken_links]).topology
    arcs = np.argwhere(whole.linked & ~faulty.linked).tolist()
    dead = {Part(f"tx_{node}", port * width, width): Constant(0, width) for node, port in arcs}
    taken = {part for each in netlist.instances for parts in each.inputs.values() for part in parts}
    assert dead.keys() <= taken, "words of each arc are a part of their own"

    def cut_links(parts: Parts) -> Parts:
        return tuple(dead.get(part, part) if isinstance(part, Part) else part for part in parts)

    instances = [
        replace(each, inputs={name: cut_links(parts) for name, parts in each.inputs.items()})
        for each in netlist.instances
    ]
    found = copy(fabric)
    found.netlist = netlist.with_instances(instances)
    return found
