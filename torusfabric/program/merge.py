"""Merging: the program of a fabric that carries out several collectives.

Each form keeps its own rows, timing and address maps. What a node has is shared: sources, injection
ports with their readers, and memories get common numbers, and nodes that do the same in all forms
are of one variant.

Every input of an out-port costs look-up tables, so an injection port of a form takes the number of
one that feeds the same out-ports and operators in other forms, and that reads the same memories, as
far as there is one. Modes with many injection ports come first. Both have to be there at the same
nodes: otherwise nodes that differ in one form only, as those of a tree do, would have endpoints of
as many shapes, while a multiplexer in the router instead of the endpoint costs the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from ..errors import InputError
from ..topology import BoolArray, IntArray, shared_network
from .address_map import DirectMap, OffsetMap, PartMap, RenumberedMap
from .fields import (
    IDLE,
    NEUTRAL,
    Action,
    Field,
    Holder,
    Loop,
    Memory,
    Point,
    Sources,
    number_equal,
)

if TYPE_CHECKING:
    from collections.abc import Hashable

    from .mode import Form
    from .program import Program

__all__ = ["merge", "mode_alone"]

#: What it is worth to share an input of an out-port, or a memory; and what each reader costs that
#: only one of two injection ports has, a choice between words of different memories, and an
#: injection port more.
INPUT, MEMORY, READER, CHOICE, PORT = 4.0, 1.0, -0.25, -3.0, -2.0

#: What it is worth to make one what may not be.
NEVER = -np.inf


def merge(programs: Sequence[Program]) -> Program:
    """One program that carries out what several do, one of them in each run.

    Parameters
    ----------
    programs : sequence of Program
        Each of one form, of any length up to the same, on the same topology but for broken links.

    Raises
    ------
    InputError
        If topologies differ, or roots are chosen in groups that do.

    Examples
    --------
    >>> import torusfabric as tf
    >>> plans = [tf.plan("3x3", name) for name in ("allgather", "broadcast")]
    >>> program = tf.compile(plans, max_flits=8)
    >>> [form.schedule.collective.kind for form in program.forms]
    ['allgather', 'broadcast']
    >>> program.cycles(8, mode=0), program.cycles(8, mode=1)
    (23, 11)
    """
    topology = shared_network(program.topology for program in programs)
    if len({tuple(program.groups.ports) for program in programs if program.any_root}) > 1:
        raise InputError(
            "Root must be a node number where collectives run along different axes, not any"
        )
    variants, memories = _CommonVariants(programs), _CommonMemories(programs)
    loops = [program.loop for program in programs]
    # By offset, every node has what any other has.
    different = variants.count if variants.of_offsets is None else 0
    of_form = [variants.of(program)[:different] for program in programs]
    taken, readers = _common_injections(loops, memories.numbers, of_form)
    sources = _common_sources([loop.sources for loop in loops], readers)
    forms, depth = [], np.zeros((variants.count, len(memories.joint)), int)
    delay = max(program.form.write_delay for program in programs)
    for k, program in enumerate(programs):
        numbers, of_variant = memories.numbers[k], variants.of(program)
        fields = _renamed(loops[k], sources, taken[k], numbers, of_variant)
        form = _in_common(program.form, sources, fields, numbers, len(memories.joint))
        forms.append(replace(form, write_delay=delay, layout=memories.layouts[k]))
        depth[:, numbers] = np.maximum(depth[:, numbers], program.depth[of_variant])
    return replace(
        programs[0],
        topology=topology,
        forms=tuple(forms),
        memories=tuple(memories.joint),
        depth=depth,
        variant_of=variants.of_nodes,
        offset_variant_of=variants.of_offsets,
        parts=tuple(programs),
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


def _in_common(
    form: Form, sources: Sources, fields: tuple[Field, ...], numbers: IntArray, memories: int
) -> Form:
    """A form with the common sources, and the common numbers of its memories."""
    pitch = np.ones(memories, int)
    pitch[numbers] = [form.loop.pitch_of(memory) for memory in range(len(numbers))]
    return replace(
        form,
        loop=replace(form.loop, sources=sources, fields=fields, pitch=tuple(pitch.tolist())),
        send_map=RenumberedMap(form.send_map, numbers),
        receive_map=RenumberedMap(form.receive_map, numbers),
        chosen=True,
    )


def _renamed(
    loop: Loop, sources: Sources, taken: list[int], memories: IntArray, variants: IntArray
) -> tuple[Field, ...]:
    """The fields of a loop with the common numbers of its injection ports and memories.

    Common variants do what the given ones do in this loop.
    """
    ports = range(loop.ports)
    source_of = loop.sources.numbers_in(sources, ports=ports, injections=taken)
    memory_of = np.array([*memories, NEUTRAL, IDLE])
    reader_of = {
        reader: sources.injections[common][place]
        for port, common in enumerate(taken)
        for place, reader in enumerate(loop.sources.injections[port])
    }
    points = {Holder.READER: reader_of, Holder.MEMORY: dict(enumerate(memories.tolist()))}
    chosen = [replace(field, values=field.values[:, variants]) for field in loop.fields]
    fields = [field.renumbered(source_of, points, memory_of) for field in chosen]
    return (*fields, *_unneeded(fields, loop, sources, taken))


def _unneeded(
    fields: list[Field], loop: Loop, sources: Sources, taken: list[int]
) -> Iterator[Field]:
    """Readers of which an injection port has more than a form needs: they change nothing."""
    of_point = {field.point: field for field in fields}
    for port, common in enumerate(taken):
        first, *others = sources.injections[common]
        reading = of_point[Point(Action.READ, first)]
        there = reading.values >= 0
        for reader in others[len(loop.sources.injections[port]) - 1 :]:
            for action, value in ((Action.MEMORY, NEUTRAL), (Action.READ, 0)):
                values = np.where(there, value, IDLE)
                yield Field(Point(action, reader), values, reading.delay)


def _common_sources(mine: Sequence[Sources], injections: Sequence[int]) -> Sources:
    """The sources of all forms, given how many readers each common injection port has."""
    ends = np.cumsum([0, *injections]).tolist()
    return Sources(
        mine[0].ports,
        tuple(sorted({port for each in mine for port in each.delayed})),
        any(each.results for each in mine),
        tuple(sorted({port for each in mine for port in each.delayed_results})),
        tuple(tuple(range(a, b)) for a, b in pairwise(ends)),
        latency=max(each.latency for each in mine),
        made=any(each.made for each in mine),
    )


class _CommonVariants:
    """The variants of all forms: those of nodes, then those of offsets from a root.

    A node does what the variant of its offset says in forms by offset, and what its own variant
    says in all others.
    """

    def __init__(self, programs: Sequence[Program]) -> None:
        fixed = [program for program in programs if not program.by_offset]
        rooted = [program for program in programs if program.by_offset]
        self._nodes, self.of_offsets = np.zeros(1, int), None
        self._offsets = np.zeros(0, int)
        self.of_nodes: IntArray = np.zeros(programs[0].topology.nodes, np.int32)
        if fixed:
            self.of_nodes, self._nodes = _alike(fixed)
        if rooted:
            of_offsets, self._offsets = _alike(rooted)
            self.of_offsets = len(self._nodes) + of_offsets
        self.count = len(self._nodes) + len(self._offsets)

    def of(self, program: Program) -> IntArray:
        """The variant of a program for each of all; any where it does not matter."""
        nodes, offsets = program.variant_of[self._nodes], program.variant_of[self._offsets]
        if program.by_offset:
            nodes = np.full_like(nodes, offsets[0])
        elif len(offsets):
            offsets = np.full_like(offsets, nodes[0])
        return np.concatenate([nodes, offsets])


def _alike(programs: Sequence[Program]) -> tuple[IntArray, IntArray]:
    """The common variants of programs: of each node, and a node of each."""
    return number_equal(zip(*(program.variant_of.tolist() for program in programs), strict=True))


class _CommonMemories:
    """The memories of a node: what comes by an in-port shares memories in all forms.

    What the host writes shares a memory with what another form sends only if both keep it at the
    same addresses: the host writes before it is known which form will read.

    Attributes
    ----------
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
            layout = layouts.setdefault(send_layout(program), len(layouts))
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
            return memory.own, memory.ports
        return memory.own, layout, number - _first_own(program)


def _first_own(program: Program) -> int:
    """The first memory that the host writes."""
    return next(number for number, memory in enumerate(program.memories) if memory.own)


def send_layout(program: Program) -> Hashable:
    """Where the host's words lie that a node sends; equal where all lie at the same addresses."""
    mapped, layout = program.form.send_map, program.layout
    facts = program.schedule.chunks, layout.part_chunks, layout.send_parts, layout.in_shares
    match mapped:
        case DirectMap():
            by_chunk = mapped.by_chunk and mapped.chunks > 1
            return "direct", facts, mapped.chunks, mapped.flits, by_chunk
        case OffsetMap():
            tables = mapped.memory - _first_own(program), mapped.base
            groups = tuple(program.groups.ports)
            return "offset", facts, groups, *(table.tobytes() for table in tables)
        case PartMap():
            tables = mapped.memory - _first_own(program), mapped.base
            return "part", facts, *(table.tobytes() for table in tables)
    return id(program)


@dataclass
class _Injection:
    """The out-ports and operators that an injection port feeds, its memories, its readers, and the
    variants of nodes that have it.
    """

    feeds: BoolArray
    reads: set[int]
    readers: int
    at: BoolArray

    def worth(self, other: _Injection) -> float:
        """What it is worth that both are one."""
        if (self.at != other.at).any():
            return NEVER
        return (
            INPUT * int((self.feeds & other.feeds).sum())
            + MEMORY * len(self.reads & other.reads)
            + CHOICE * self.reads.isdisjoint(other.reads)
            + READER * abs(self.readers - other.readers)
        )

    def join(self, other: _Injection) -> None:
        """Do what another does, in its form."""
        self.feeds = self.feeds | other.feeds
        self.reads |= other.reads
        self.readers = max(self.readers, other.readers)


def _common_injections(
    loops: Sequence[Loop], memories: Sequence[IntArray], variants: Sequence[IntArray]
) -> tuple[list[list[int]], list[int]]:
    """The common number of each injection port of each loop, and the readers of each common one.

    Given are, of each loop, the common number of each of its memories, and its variant for each of
    the common ones among which endpoints may differ.
    """
    numbers: list[list[int]] = [[] for _ in loops]
    common: list[_Injection] = []
    for form in sorted(range(len(loops)), key=lambda k: -len(loops[k].sources.injections)):
        mine = _injections(loops[form], memories[form], variants[form])
        for one, number in zip(mine, _assigned(mine, common), strict=True):
            if number < len(common):
                common[number].join(one)
                numbers[form].append(number)
            else:
                numbers[form].append(len(common))
                common.append(one)
    return numbers, [one.readers for one in common]


def _assigned(mine: Sequence[_Injection], common: Sequence[_Injection]) -> list[int]:
    """The common number of each injection port of a form; new ones begin after those there are."""
    if not common:
        return list(range(len(mine)))
    # Here, since only several forms need it and its import takes longer than compiling a small one.
    from scipy.optimize import linear_sum_assignment

    worth = np.full((len(mine), len(common) + len(mine)), PORT)
    for row, one in zip(worth, mine, strict=True):
        row[: len(common)] = [one.worth(other) for other in common]
    _, chosen = linear_sum_assignment(worth, maximize=True)
    return [int(number) for number in chosen]


def _injections(loop: Loop, memories: IntArray, variants: IntArray) -> list[_Injection]:
    """What each injection port of a loop does."""
    found = []
    for number, readers in enumerate(loop.sources.injections):
        source = loop.sources.first_injection + number
        feeds = [
            (loop.values(action, port) == source).any()
            for action in (Action.SELECT, Action.OPERAND)
            for port in range(loop.ports)
        ]
        values = np.array([loop.values(Action.MEMORY, reader) for reader in readers])
        read = np.unique(values)
        at = (values != IDLE).any(axis=(0, 1))[variants]
        known = set(memories[read[read >= 0]].tolist())
        found.append(_Injection(np.array(feeds), known, len(readers), at))
    return found
