"""Merging: the program of a fabric that carries out several collectives.

Each mode keeps its own rows, timing and address maps. What a node has is shared: sources, injection
ports with their readers, and memories get common numbers, and nodes that do the same in all modes
are of one variant.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from ..errors import InputError
from ..topology import IntArray
from .address_map import DirectMap, OffsetMap, RenumberedMap
from .common_injections import common_injections
from .values import IDLE, MADE, NEUTRAL, Loop, Memory, Reads, Writes
from .variants import number_equal

if TYPE_CHECKING:
    from collections.abc import Hashable

    from .program import Mode, Program

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
    variants = _Variants(programs)
    memories = _Memories(programs)
    loops = [program.loop for program in programs]
    sources = _Sources(loops, *common_injections(loops, memories.numbers))
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


class _Variants:
    """The variants of all modes: those of nodes, then those of offsets from a root.

    A node does what the variant of its offset says in modes by offset, and what its own variant
    says in all others.

    Attributes
    ----------
    of_nodes : ndarray of int, shape (nodes,)
    of_offsets : ndarray of int, shape (nodes,), or None
        None where there is no such mode.
    count : int
    """

    def __init__(self, programs: Sequence[Program]) -> None:
        fixed = [program for program in programs if not program.by_offset]
        rooted = [program for program in programs if program.by_offset]
        self._nodes, self.of_offsets = np.zeros(1, int), None
        self._offsets = np.zeros(0, int)
        self.of_nodes: IntArray = np.zeros(programs[0].topology.nodes, np.int32)
        if fixed:
            self.of_nodes, nodes = _common(fixed)
            self._nodes = np.array(nodes)
        if rooted:
            of_offsets, offsets = _common(rooted)
            self.of_offsets, self._offsets = len(self._nodes) + of_offsets, np.array(offsets)
        self.count = len(self._nodes) + len(self._offsets)

    def of(self, program: Program) -> IntArray:
        """The variant of a program for each of all; any where it does not matter."""
        nodes, offsets = program.variant_of[self._nodes], program.variant_of[self._offsets]
        if program.by_offset:
            nodes = np.full_like(nodes, offsets[0])
        elif len(offsets):
            offsets = np.full_like(offsets, nodes[0])
        return np.concatenate([nodes, offsets])


def _common(programs: Sequence[Program]) -> tuple[IntArray, list[int]]:
    """The common variants of programs: of each node, and a node of each."""
    return number_equal(zip(*(program.variant_of.tolist() for program in programs), strict=True))


def _mode(mode: Mode, loop: Loop, numbers: IntArray) -> Mode:
    """A mode with common numbers."""
    return replace(
        mode,
        loop=loop,
        send_map=RenumberedMap(mode.send_map, numbers),
        receive_map=RenumberedMap(mode.receive_map, numbers),
        chosen=True,
    )


class _Memories:
    """The memories of a node: what comes by an in-port shares memories in all modes.

    What the host writes shares a memory with what another mode sends only if both keep it at the
    same addresses: the host writes before it is known which mode will read.

    Attributes
    ----------
    joint : list of Memory
    numbers : list of ndarray of int
        Of each program, the common number of each of its memories.
    layouts : list of int
        Of each program, the number of its send map among those that differ.
    """

    def __init__(self, programs: Sequence[Program]) -> None:
        self.joint: list[Memory] = []
        self.numbers: list[IntArray] = []
        self.layouts: list[int] = []
        known: dict[Hashable, int] = {}
        layouts: dict[Hashable, int] = {}
        for program in programs:
            layout = layouts.setdefault(_send_layout(program), len(layouts))
            self.layouts.append(layout)
            used: dict[Hashable, int] = {}
            numbers = []
            for number, memory in enumerate(program.memories):
                key: Hashable = self._key(program, number, layout)
                key = key, used.setdefault(key, 0)
                used[key[0]] += 1
                at = known.setdefault(key, len(self.joint))
                if at == len(self.joint):
                    self.joint.append(replace(memory, layout=layout))
                else:
                    ports = sorted({*self.joint[at].ports, *memory.ports})
                    self.joint[at] = replace(self.joint[at], ports=tuple(ports))
                numbers.append(at)
            self.numbers.append(np.array(numbers))

    @staticmethod
    def _key(program: Program, number: int, layout: int) -> Hashable:
        """What memories have in common that are one."""
        memory = program.memories[number]
        if not memory.own:
            return tuple(port for port in memory.ports if port != MADE)
        return layout, number - _first_own(program)


def _first_own(program: Program) -> int:
    """The first memory that the host writes."""
    return next(number for number, memory in enumerate(program.memories) if memory.own)


def _send_layout(program: Program) -> Hashable:
    """Where the host's words lie that a node sends; equal where all lie at the same addresses."""
    mapped, layout = program.mode.send_map, program.layout
    facts = program.schedule.chunks, layout.part_chunks, layout.send_parts, layout.in_shares
    match mapped:
        case DirectMap():
            return "direct", facts, mapped.chunks, mapped.flits, mapped.by_chunk, mapped.base
        case OffsetMap():
            tables = mapped.memory - _first_own(program), mapped.base
            groups = tuple(program.groups.ports)
            return "offset", facts, groups, mapped.ahead, *(table.tobytes() for table in tables)
    return id(program)


@dataclass(frozen=True)
class _Sources:
    """The sources of all modes.

    Parameters
    ----------
    loops : sequence of Loop
    injection_numbers : list of (list of int)
        Of each loop, the common number of each of its injection ports.
    readers : list of int
        Of each common injection port, how many readers it has.
    """

    loops: Sequence[Loop]
    injection_numbers: list[list[int]]
    readers: list[int]

    @property
    def delayed(self) -> tuple[int, ...]:
        """The in-ports with a second register."""
        return tuple(sorted({port for loop in self.loops for port in loop.delayed}))

    @property
    def results(self) -> bool:
        """Whether operators stand behind in-ports."""
        return any(loop.results for loop in self.loops)

    @property
    def delayed_results(self) -> tuple[int, ...]:
        """The in-ports whose results have a second register."""
        return tuple(sorted({port for loop in self.loops for port in loop.delayed_results}))

    @property
    def first_injection(self) -> int:
        """The number of the first injection port."""
        ports = self.loops[0].ports
        results = ports + len(self.delayed_results) if self.results else 0
        return ports + len(self.delayed) + results

    @property
    def injections(self) -> tuple[tuple[int, ...], ...]:
        """The readers of each injection port: as many as any mode needs."""
        ends = np.cumsum([0, *self.readers]).tolist()
        return tuple(tuple(range(a, b)) for a, b in pairwise(ends))

    def numbers(self, mode: int) -> IntArray:
        """The common number of each source of a loop, and, from the end, of what is none."""
        loop = self.loops[mode]
        ports = loop.ports
        numbers = [*range(ports), *(ports + self.delayed.index(port) for port in loop.delayed)]
        if loop.results:
            first = ports + len(self.delayed)
            numbers += range(first, first + ports)
            later = self.delayed_results
            numbers += [first + ports + later.index(port) for port in loop.delayed_results]
        injections = (self.first_injection + number for number in self.injection_numbers[mode])
        identity = self.first_injection + len(self.injections)
        return np.array([*numbers, *injections, identity, IDLE], np.int16)


def _loop(mode: int, sources: _Sources, memories: IntArray, count: int, variants: IntArray) -> Loop:
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


def _reads(mode: int, sources: _Sources, memories: IntArray, variants: IntArray) -> list[Reads]:
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
