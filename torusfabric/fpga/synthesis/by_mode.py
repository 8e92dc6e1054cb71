"""What a fabric of several collectives costs, beside a fabric for each of them alone."""

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
from . import synthesize as synthesis

if TYPE_CHECKING:
    from ...program import Program
    from .report import SynthesisReport
    from .synthesize import Progress

__all__ = ["StoredWords", "cost_by_mode", "cost_of_forms", "count_words", "mode_alone"]

#: A context around the synthesis of one mode, given its name.
Around = Callable[[str], AbstractContextManager["Progress | None"]]


class StoredWords(NamedTuple):
    """Words of memory, counted over all nodes.

    Parameters
    ----------
    received : int
        Of what arrives or is computed; forms share them, as deep as the deepest needs.
    sent : int
        Of what the host writes, and nodes send.
    send_maps : int
        How many different ways forms have to lay out what is sent. Each has memories of its own,
        for the host writes before it is known which form will read.
    """

    received: int
    sent: int
    send_maps: int


def count_words(program: Program) -> StoredWords:
    """Count the words of all memories.

    Examples
    --------
    >>> import torusfabric as tf
    >>> plans = [tf.plan("3x3", name) for name in ("allgather", "alltoall")]
    >>> count_words(tf.compile(plans, max_flits=2))
    StoredWords(received=180, sent=180, send_maps=2)
    """
    own = np.array([memory.own for memory in program.memories])
    depth = program.depth[program.variant_of]
    return StoredWords(
        received=int(depth[:, ~own].sum()),
        sent=int(depth[:, own].sum()),
        send_maps=len({memory.layout for memory in program.memories if memory.own}),
    )


def mode_alone(program: Program, mode: int) -> Program:
    """What a mode would be alone, with all its forms.

    Examples
    --------
    >>> import torusfabric as tf
    >>> broadcasts = [tf.plan("9", "broadcast", trees=trees) for trees in (1, 2)]
    >>> program = tf.compile([tf.plan("9", "allgather"), broadcasts], max_flits=64)
    >>> [len(mode_alone(program, mode).forms) for mode in (0, 1)]
    [1, 2]
    """
    chosen = program.modes[mode]
    parts = [program.part(chosen.first + number) for number in range(len(chosen.forms))]
    if len(parts) == 1:
        return parts[0]
    return replace(merge(parts), served=(chosen.ranges,))


def cost_by_mode(fabric: Fabric, report: SynthesisReport, around: Around) -> dict[str, Any]:
    """Synthesize a fabric for each mode alone, and compare it with the fabric for all modes.

    The fabrics have the same width and the same largest number of flits.

    Parameters
    ----------
    report : SynthesisReport
        The report of the fabric for all modes.
    around : function of (str) -> context manager
        Called with the name of a mode before its synthesis; the context yields the progress.

    Returns
    -------
    dict
        ``modes``: for each mode its number, collective, algorithm and costs, ``inputs``, the number
        of sources of its out-ports over all nodes, and ``own_inputs``, those that no other mode
        selects. ``together``: the costs of the fabric for all modes, all ``inputs``,
        ``shared_inputs`` of two modes or more, and ``words``, see `StoredWords`. ``ratios``: the
        fabric for all modes to the dearest mode alone; None where that mode costs nothing.
        ``least_router_luts``: the fewest LUTs that select from the sources of the dearest router;
        None if not known. ``least_router_ratio``: the same to the dearest router of a mode alone.
    """
    program, modes = fabric.program, list[dict[str, Any]]()
    inputs = count_inputs(program)
    for number, mode in enumerate(program.modes):
        names = {"collective": program.name_of(mode), "algorithm": mode.algorithms}
        with around(" by ".join(names.values())) as progress:
            costs = _cost_of(fabric, mode_alone(program, number), report, progress)
        counts = {"inputs": inputs.of_modes[number], "own_inputs": inputs.own[number]}
        modes.append({"mode": number, **names, **costs, **counts})
    together, least = _costs(fabric, report), _dearest_router(report).get("least_luts")
    dearest = {name: max(mode[name] for mode in modes) for name in together}

    def ratio(name: str, value: int | None) -> float | None:
        return None if value is None or not dearest[name] else round(value / dearest[name], 3)

    return {
        "modes": modes,
        "together": together
        | {"inputs": inputs.total, "shared_inputs": inputs.shared}
        | {"words": count_words(program)._asdict()},
        "ratios": {name: ratio(name, value) for name, value in together.items()},
        "least_router_luts": least,
        "least_router_ratio": ratio("router_luts", least),
    }


def cost_of_forms(
    fabric: Fabric, report: SynthesisReport, by_mode: dict[str, Any] | None, around: Around
) -> list[dict[str, Any]]:
    """Synthesize a fabric with the form for the longest messages alone, where a mode has several.

    Parameters
    ----------
    by_mode : dict, optional
        The result of `cost_by_mode`, where there are several modes.
    report, around
        As of `cost_by_mode`.

    Returns
    -------
    list of dict
        ``mode``; ``luts`` of a fabric for the mode alone; ``longest``, the LUTs with the form for
        the longest messages alone; ``share``, the part of the other forms.
    """
    found = []
    for number, mode in enumerate(fabric.program.modes):
        if not mode.several:
            continue
        luts = by_mode["modes"][number]["luts"] if by_mode else report.fabric["luts"]
        form = fabric.program.part(mode.form_of(fabric.flits))
        with around(f"{mode.collective} by {mode.schedule.algorithm}") as progress:
            longest = _cost_of(fabric, form, report, progress)["luts"]
        share = round(1 - longest / luts, 3)
        found.append({"mode": number, "luts": luts, "longest": longest, "share": share})
    return found


def _cost_of(
    fabric: Fabric, program: Program, report: SynthesisReport, progress: Progress | None
) -> dict[str, int]:
    """What a fabric like one that was synthesized costs with another program."""
    alone = fabric.with_program(program)
    found = synthesis.synthesize(alone, report.target, mapping=report.mapping, progress=progress)
    return _costs(alone, found)


def _costs(fabric: Fabric, report: SynthesisReport) -> dict[str, int]:
    """The costs of the dearest router and of a whole fabric, by its report, and what it stores."""
    inventory, router = take_inventory(fabric.netlist), _dearest_router(report)
    names = ("luts", "ffs", "brams")
    costs = {f"router_{name}": router[name] for name in names}
    costs |= {name: report.fabric[name] for name in names}
    return costs | {"memory_bits": inventory.memory_bits, "rom_bits": inventory.rom_bits}


def _dearest_router(report: SynthesisReport) -> dict[str, Any]:
    """The class of routers with the most LUTs."""
    return max(report.classes, key=lambda row: row["luts"])
