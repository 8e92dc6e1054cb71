"""Cost of a fabric for several collectives, compared with a fabric for each of them alone.

The user is the command ``synth``.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...program.counts import count_inputs
from ...program.merge import merge
from ...rtl.fabric import Fabric
from ...rtl.inventory import take_inventory
from ...verilog import emit
from . import synthesize as synthesis

if TYPE_CHECKING:
    from ...program import Program
    from .report import SynthesisReport
    from .synthesize import Progress

__all__ = ["StoredWords", "cost_by_mode", "cost_of_forms", "count_memory_words", "mode_program"]

#: Context manager around the synthesis of one mode, made from the name of the mode.
ProgressContext = Callable[[str], AbstractContextManager["Progress | None"]]


class StoredWords(NamedTuple):
    """Words of memory, counted over all nodes.

    Parameters
    ----------
    received : int
        Words of receive memories, for data that arrive or are computed. Forms share these memories,
        which are as deep as the deepest form needs.
    sent : int
        Words of send memories, which the host writes.
    send_maps : int
        Number of different address maps (tables with the memory and address of each block) for the
        words that the host writes. Forms with different address maps cannot share send memories.
        Why: the host writes before the start, and only the start decides the form that reads.
    """

    received: int
    sent: int
    send_maps: int


def count_memory_words(program: Program) -> StoredWords:
    """Count the words of all memories of a program.

    Examples
    --------
    An all-gather sends one message from each node, an all-to-all nine, so address maps differ.

    >>> import torusfabric as tf
    >>> plans = [tf.plan("3x3", name) for name in ("allgather", "alltoall")]
    >>> count_memory_words(tf.compile(plans, max_flits=2))
    StoredWords(received=180, sent=180, send_maps=2)
    """
    own = np.array([memory.own for memory in program.memories])
    depth = program.depth[program.variant_of]
    return StoredWords(
        received=int(depth[:, ~own].sum()),
        sent=int(depth[:, own].sum()),
        send_maps=len({memory.layout for memory in program.memories if memory.own}),
    )


def mode_program(program: Program, mode: int) -> Program:
    """Return the program of one mode alone, with all its forms.

    Examples
    --------
    Mode 0 has one form, and mode 1 has two.

    >>> import torusfabric as tf
    >>> broadcasts = [tf.plan("9", "broadcast", trees=trees) for trees in (1, 2)]
    >>> program = tf.compile([tf.plan("9", "allgather"), broadcasts], max_flits=64)
    >>> [len(mode_program(program, mode).forms) for mode in (0, 1)]
    [1, 2]
    """
    chosen = program.modes[mode]
    parts = [program.part(chosen.first + number) for number in range(len(chosen.forms))]
    if len(parts) == 1:
        return parts[0]
    return replace(merge(parts), served=(chosen.ranges,))


def cost_by_mode(
    fabric: Fabric, report: SynthesisReport, around: ProgressContext
) -> dict[str, Any]:
    """Synthesize a fabric for each mode alone, and compare them with the fabric for all modes.

    The fabrics have the same width and the same largest number of flits.

    Parameters
    ----------
    report : SynthesisReport
        Report of the fabric for all modes.
    around : function of (str) -> context manager
        Called with the name of a mode before its synthesis; the context yields the progress
        callback.

    Returns
    -------
    dict
        ``modes``: an entry for each mode with number, collective, algorithm, costs, ``inputs``
        (crossbar inputs that it selects, summed over the out-ports of all nodes) and ``own_inputs``
        (those that no other mode selects). ``together``: costs of the fabric for all modes,
        ``inputs``, ``shared_inputs`` of two modes or more, and ``words`` as `StoredWords`.
        ``ratios``: cost of the fabric for all modes divided by that of the largest single mode;
        None where that is 0. ``least_router_luts``: the fewest LUTs that select from the sources of
        the largest router; None if not known. ``least_router_ratio``: that number divided by the
        LUTs of the largest router of a single mode.
    """
    program, modes = fabric.program, list[dict[str, Any]]()
    inputs = count_inputs(program)
    for number, mode in enumerate(program.modes):
        names = {"collective": program.name_of(mode), "algorithm": mode.algorithm_names}
        with around(" by ".join(names.values())) as progress:
            costs = _cost_of_program(fabric, mode_program(program, number), report, progress)
        counts = {"inputs": inputs.of_modes[number], "own_inputs": inputs.own[number]}
        modes.append({"mode": number, **names, **costs, **counts})
    together, least = _report_costs(fabric, report), _largest_router(report).get("least_luts")
    dearest = {name: max(mode[name] for mode in modes) for name in together}

    def ratio(name: str, value: int | None) -> float | None:
        return None if value is None or not dearest[name] else round(value / dearest[name], 3)

    return {
        "modes": modes,
        "together": together
        | {"inputs": inputs.total, "shared_inputs": inputs.shared}
        | {"words": count_memory_words(program)._asdict()},
        "ratios": {name: ratio(name, value) for name, value in together.items()},
        "least_router_luts": least,
        "least_router_ratio": ratio("router_luts", least),
    }


def cost_of_forms(
    fabric: Fabric, report: SynthesisReport, by_mode: dict[str, Any] | None, around: ProgressContext
) -> list[dict[str, Any]]:
    """Find the cost of several forms: LUTs of each mode with all forms, and with one form alone.

    For each mode with several forms, a fabric with only the form for the longest messages is
    synthesized. The result is empty for silicon.

    Parameters
    ----------
    by_mode : dict, optional
        Result of `cost_by_mode`, whose costs of single modes are used again; None for a fabric
        with one mode.
    report : SynthesisReport
        Report of the fabric for all modes.
    around : function of (str) -> context manager
        Called with the name of a form before its synthesis; the context yields the progress
        callback.

    Returns
    -------
    list of dict
        ``mode``: number of the mode. ``luts``: LUTs of a fabric for the mode alone. ``longest``:
        LUTs with the form for the longest messages alone. ``share``: part of ``luts``, from 0 to 1,
        that is saved without the other forms.
    """
    found = list[dict[str, Any]]()
    if "luts" not in report.cost_columns:
        return found
    for number, mode in enumerate(fabric.program.modes):
        if not mode.has_several_ranges:
            continue
        luts = by_mode["modes"][number]["luts"] if by_mode else report.fabric["luts"]
        form = fabric.program.part(mode.form_of(fabric.flits))
        with around(f"{mode.collective} by {mode.schedule.algorithm}") as progress:
            longest = _cost_of_program(fabric, form, report, progress)["luts"]
        share = round(1 - longest / luts, 3)
        found.append({"mode": number, "luts": luts, "longest": longest, "share": share})
    return found


def _cost_of_program(
    fabric: Fabric, program: Program, report: SynthesisReport, progress: Progress | None
) -> dict[str, int]:
    """Synthesize a fabric with another program, and return its costs by name, such as ``luts``.

    Parameters
    ----------
    fabric : Fabric
        The fabric, whose other properties stay the same.
    program : Program
        The other program.
    report : SynthesisReport
        Report that names the target and the mapping.
    progress : function of (int, int, str) or None
        Called after each step of the synthesis.
    """
    alone = fabric.with_program(program)
    design = emit(alone, ram=report.ram)  # the same rule, so that costs can be compared
    found = synthesis.synthesize(design, report.target, mapping=report.mapping, progress=progress)
    return _report_costs(alone, found)


def _report_costs(fabric: Fabric, report: SynthesisReport) -> dict[str, int]:
    """Return the costs that are compared: of the largest router, of the fabric, and of memories.

    Parameters
    ----------
    fabric : Fabric
        The fabric, whose netlist has the memories and ROMs.
    report : SynthesisReport
        Report about the fabric, from which all other costs come.

    Returns
    -------
    dict of str to int
        ``router_luts``, ``router_ffs`` and ``router_brams`` of the router class with the most LUTs;
        ``luts``, ``ffs`` and ``brams`` of the fabric; ``memory_bits`` and ``rom_bits``. On silicon,
        ``gates`` and ``ram_bits`` take the place of ``luts`` and ``brams``.
    """
    inventory, router = take_inventory(fabric.netlist), _largest_router(report)
    costs = {f"router_{name}": round(router[name]) for name in report.cost_columns}
    costs |= {name: round(report.fabric[name]) for name in report.cost_columns}
    return costs | {"memory_bits": inventory.memory_bits, "rom_bits": inventory.rom_bits}


def _largest_router(report: SynthesisReport) -> dict[str, Any]:
    """Return the row (a dictionary of costs) of the router class with the most logic."""
    return max(report.classes, key=lambda row: row[next(iter(report.cost_columns))])
