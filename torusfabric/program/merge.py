"""Merging: the program of a fabric that carries out several collectives.

Each mode keeps its own rows, timing and address maps. What a node has is shared: sources, injection
ports with their readers, and memories get common numbers, and nodes that do the same in all modes
are of one variant.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ..errors import InputError
from ..topology import IntArray
from .address_map import RenumberedMap
from .common_injections import common_injections
from .common_memories import CommonMemories
from .common_sources import CommonSources
from .common_variants import CommonVariants
from .values import MADE, NEUTRAL, Loop, Reads, Writes

if TYPE_CHECKING:
    from .mode import Mode
    from .program import Program

__all__ = ["merge"]


def merge(programs: Sequence[Program]) -> Program:
    """One program that carries out what several do, one of them in each run.

    Parameters
    ----------
    programs : sequence of Program
        Each of one mode, of any length up to the same, on the same topology.

    Returns
    -------
    Program

    Raises
    ------
    InputError
        If topologies differ, or roots are chosen in groups that do.

    Examples
    --------
    >>> import torusfabric as tf
    >>> plans = [tf.plan("3x3", name) for name in ("allgather", "broadcast")]
    >>> program = tf.compile(plans, max_flits=8)
    >>> [mode.schedule.collective.kind for mode in program.modes]
    ['allgather', 'broadcast']
    >>> program.cycles(8, mode=0), program.cycles(8, mode=1)
    (23, 26)
    """
    first = programs[0]
    for program in programs:
        if program.topology != first.topology:
            raise InputError(
                f"Topology must be the same for all collectives of a fabric, {first.topology}, not "
                f"{program.topology}"
            )
    if len({tuple(program.groups.ports) for program in programs if program.any_root}) > 1:
        raise InputError(
            "Root must be a node number where collectives run along different axes, not any"
        )
    variants = CommonVariants(programs)
    memories = CommonMemories(programs)
    loops = [program.loop for program in programs]
    sources = CommonSources(loops, *common_injections(loops, memories.numbers))
    modes, depth = [], np.zeros((variants.count, len(memories.joint)), int)
    delay = max(program.mode.write_delay for program in programs)
    for k, program in enumerate(programs):
        numbers, layout = memories.numbers[k], memories.layouts[k]
        of_mode = variants.of(program)
        loop = _loop(k, sources, numbers, len(memories.joint), of_mode)
        mode = _mode(program.mode, loop, numbers)
        modes.append(replace(mode, write_delay=delay, layout=layout))
        depth[:, numbers] = np.maximum(depth[:, numbers], program.depth[of_mode])
    return replace(
        first,
        modes=tuple(modes),
        memories=tuple(memories.joint),
        depth=depth,
        variant_of=variants.of_nodes,
        offset_variant_of=variants.of_offsets,
        parts=tuple(programs),
    )


def _mode(mode: Mode, loop: Loop, numbers: IntArray) -> Mode:
    """A mode with common numbers."""
    return replace(
        mode,
        loop=loop,
        send_map=RenumberedMap(mode.send_map, numbers),
        receive_map=RenumberedMap(mode.receive_map, numbers),
        chosen=True,
    )


def _loop(
    mode: int, sources: CommonSources, memories: IntArray, count: int, variants: IntArray
) -> Loop:
    """A loop with common numbers."""
    loop, number = sources.loops[mode], sources.numbers(mode)
    made = number[loop.first_injection]
    writes = [_no_writes(loop.rows, len(variants))] * count
    for memory, stored in enumerate(loop.writes):
        writes[memories[memory]] = _writes(stored, number, int(made), variants)
    pitch = np.ones(count, int)
    pitch[memories] = [loop.pitch_of(memory) for memory in range(len(memories))]
    return replace(
        loop,
        select=number[_of_variants(loop.select, variants)],
        operand=None if loop.operand is None else number[loop.operand],
        delayed=sources.delayed,
        results=sources.results,
        delayed_results=sources.delayed_results,
        injections=sources.injections,
        reads=tuple(_reads(mode, sources, memories, variants)),
        writes=tuple(writes),
        pitch=tuple(pitch.tolist()),
    )


def _of_variants(values: IntArray, variants: IntArray) -> IntArray:
    """Values of rows and variants, for the common variants."""
    if values.shape[1] == 1:
        return np.broadcast_to(values, (len(values), len(variants), *values.shape[2:]))
    chosen: IntArray = values[:, variants]
    return chosen


def _writes(writes: Writes, number: IntArray, made: int, variants: IntArray) -> Writes:
    """Writes with common numbers of sources and variants; `made` is that of the first injection."""
    base, blocks, hops, port = (
        _of_variants(values, variants)
        for values in (writes.base, writes.blocks, writes.hops, writes.port)
    )
    return Writes(base, blocks, hops, np.where(port == MADE, made, number[port]), writes.skew)


def _no_writes(rows: int, variants: int) -> Writes:
    """Of a memory that stores nothing."""
    base = np.full((rows, variants), -1)
    zero = np.zeros_like(base)
    return Writes(base, zero, zero, zero)


def _reads(
    mode: int, sources: CommonSources, memories: IntArray, variants: IntArray
) -> list[Reads]:
    """What each of the common readers reads.

    Where an injection port has more readers than this mode needs, those read the word that changes
    nothing.
    """
    found: list[Reads] = []
    loop, taken = sources.loops[mode], sources.injection_numbers[mode]
    number = np.array([*memories, NEUTRAL, -1])  # NEUTRAL is the last but one
    for port, readers in enumerate(sources.injections):
        mine = loop.injections[taken.index(port)] if port in taken else ()
        for k in range(len(readers)):
            if not mine:
                found.append(_no_reads(loop.rows, len(variants)))
                continue
            reads = loop.reads[mine[min(k, len(mine) - 1)]]
            memory = number[reads.memory] if k < len(mine) else np.full_like(reads.memory, NEUTRAL)
            start, count = (_of_variants(v, variants) for v in (reads.start, reads.count))
            base = reads.base if k < len(mine) else np.zeros_like(reads.base)
            found.append(Reads(start, count, memory, base, reads.blocks, reads.skew))
    return found


def _no_reads(rows: int, variants: int) -> Reads:
    """Of a reader that reads nothing."""
    none, empty = np.zeros((rows, variants), np.int32), np.zeros(0, int)
    return Reads(none, none, empty, empty, empty)
