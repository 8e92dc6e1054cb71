"""Merging: one program for a fabric with several forms.

Each form keeps its own rows, timing and address maps. The hardware of a node is shared: sources,
injection ports, readers and memories get common numbers. Nodes that act alike in all forms share a
variant (a set of nodes that act alike).

The numbers of the merged program are called *common* here, and the program of each form has numbers
of its own. A form is *by offset* if a node acts according to its offset from the root. A *reader*
reads words out of a memory, and an *injection port* brings the words of one or several readers to
the router.

Injection ports of different forms are merged where this takes fewer LUTs. Why: every second input
of an out-port costs a LUT for each bit, so it mostly pays if an injection port feeds the same
out-ports and operators, and reads the same memories, in several forms. The assignment problem of
forms and ports is solved form by form, beginning with the form that has the most injection ports.

Two injection ports are merged only if the same nodes have both. Why: otherwise nodes that differ in
one form only, such as those of a tree, would need endpoints of many different Verilog modules. Two
ports that stay apart need a multiplexer in the router instead of the endpoint, which costs the
same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..errors import InputError
from ..topology import BoolArray, IntArray, shared_network
from .alike_memories import store_by_port
from .fields import (
    IDENTITY_MEMORY,
    IDLE,
    Action,
    Field,
    Loop,
    Memory,
    NodeComponent,
    Point,
    Source,
    Sources,
    Stage,
    first_own_memory,
    number_by_value,
)

if TYPE_CHECKING:
    from collections.abc import Hashable

    from .program import Program

__all__ = ["merge"]

#: Costs beside those of LUTs, in LUTs of a node for each bit: of an input of an out-port, of an
#: additional injection port, of a further memory of a port, and of a reader that only one of two
#: merged ports has.
INPUT, PORT, MEMORY, READER = 0.125, 0.25, 0.125, 0.03

#: The cost of merging two injection ports that must stay apart.
NEVER = np.inf


def merge(programs: Sequence[Program], *, share_messages: bool = False) -> Program:
    """Merge programs of one form each into a program with several forms, each of which is a mode.

    The program has memories, ports to the routers and settings that serve all forms. Each form
    keeps its own rows.

    Parameters
    ----------
    programs : sequence of Program
        Programs of one form, of any length up to the same limit. Their topologies are equal except
        for broken links.
    share_messages : bool
        True if the messages of all forms use the same memories; see `Program.arrange_messages`.

    Raises
    ------
    InputError
        If topologies differ, or roots are chosen within different groups.

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
    if (
        len({tuple(program.groups.port_in_topology) for program in programs if program.any_root})
        > 1
    ):
        raise InputError(
            "Root any needs collectives that run along the same axes; give a node number, or "
            "build one fabric for each"
        )
    programs = store_by_port(programs)
    loops = [program.loop for program in programs]
    of_nodes, of_offsets, variants = _join_variants(programs)
    joint, numbers, layouts = _join_memories(programs, share_messages=share_messages)
    # In a form by offset any node can take any role, so all nodes have equal injection ports.
    nodes = np.bincount(of_nodes) if of_offsets is None else np.zeros(0, int)
    taken, readers = _common_injections(loops, numbers, variants, nodes)
    ends = np.cumsum([0, *readers]).tolist()
    mine = [loop.sources for loop in loops]
    sources = Sources(
        mine[0].ports,
        tuple(sorted({port for each in mine for port in each.delayed})),
        any(each.results for each in mine),
        tuple(sorted({port for each in mine for port in each.delayed_results})),
        tuple(tuple(range(a, b)) for a, b in pairwise(ends)),
        latency=max(each.latency for each in mine),
        made=any(each.made for each in mine),
    )
    forms, depth = [], np.zeros((len(variants[0]), len(joint)), int)
    pitch = np.ones((len(programs), len(joint)), int)
    for k, program in enumerate(programs):
        fields = _renumber_fields(loops[k], sources, taken[k], numbers[k], variants[k])
        pitch[k, numbers[k]] = [loops[k].pitch_of(memory) for memory in range(len(numbers[k]))]
        form = replace(
            program.form,
            loop=replace(loops[k], sources=sources, fields=fields, pitch=tuple(pitch[k].tolist())),
            send_map=program.form.send_map.renumber_memories(numbers[k]),
            receive_map=program.form.receive_map.renumber_memories(numbers[k]),
            layout=layouts[k],
            chosen=True,
        )
        forms.append(form)
        depth[:, numbers[k]] = np.maximum(depth[:, numbers[k]], program.depth[variants[k]])
    return replace(
        programs[0],
        topology=topology,
        forms=tuple(forms),
        memories=tuple(joint),
        depth=depth,
        variant_of=of_nodes,
        offset_variant_of=of_offsets,
        parts=tuple(programs),
    )


def _renumber_fields(
    loop: Loop, sources: Sources, taken: list[int], memories: IntArray, variants: IntArray
) -> tuple[Field, ...]:
    """Return the fields of one form with the numbers that the merged program uses.

    A field has the values of one component in all rows.

    Merging gives common numbers to the components of all forms, and to variants, the sets of nodes
    that act alike.

    Parameters
    ----------
    loop : Loop
        The rows of the form, with its own numbers.
    sources : Sources
        The sources of a node of the merged program: all components whose words others can select.
    taken : list of int
        For each injection port of the form (an input of the router for words from memories), its
        common number.
    memories : ndarray of int
        For each memory of the form, its common number.
    variants : ndarray of int
        For each common variant, the variant of the form.
    """
    ports = range(loop.n_ports)
    source_of = loop.sources.numbers_within(sources, ports=ports, injections=taken)
    memory_of = np.array([*memories, IDENTITY_MEMORY, IDLE])
    reader_of = {
        reader: sources.injections[common][place]
        for port, common in enumerate(taken)
        for place, reader in enumerate(loop.sources.injections[port])
    }
    points = {
        NodeComponent.READER: reader_of,
        NodeComponent.MEMORY: dict(enumerate(memories.tolist())),
    }
    chosen = [replace(field, values=field.values[:, variants]) for field in loop.fields]
    fields = [field.renumber(source_of, points, memory_of) for field in chosen]
    of_point = {field.point: field for field in fields}
    for port, common in enumerate(taken):
        first, *others = sources.injections[common]
        reading = of_point[Point(Action.READ, first)]
        # Superfluous readers of an injection port give the identity word.
        for reader in others[len(loop.sources.injections[port]) - 1 :]:
            for action, value in ((Action.MEMORY, IDENTITY_MEMORY), (Action.READ, 0)):
                values = np.where(reading.values >= 0, value, IDLE)
                fields.append(Field(Point(action, reader), values, reading.delay))
    return tuple(fields)


def _join_variants(
    programs: Sequence[Program],
) -> tuple[IntArray, IntArray | None, list[IntArray]]:
    """Return common variants for several programs, each of which is one form of the merged program.

    A variant is a set of nodes that act alike; two nodes are in one common variant if they act
    alike in all forms. If a form is *by offset*, a node acts according to its offset from the root
    of the run, so its variants are sets of offsets. Common variants of nodes are numbered first,
    then those of offsets.

    Returns
    -------
    of_nodes : ndarray of int, shape (nodes,)
        Common variant of each node.
    of_offsets : ndarray of int, shape (nodes,), or None
        Common variant of each offset; None if no form is by offset.
    variants : list of ndarray of int, shape (common variants,)
        For each program, its own variant for each common variant. The entry is arbitrary where no
        node of this program acts by the common variant.
    """
    fixed = [program for program in programs if not program.by_offset]
    rooted = [program for program in programs if program.by_offset]
    of_nodes: IntArray = np.zeros(programs[0].topology.nodes, np.int32)
    of_offsets, nodes, offsets = None, np.zeros(1, int), np.zeros(0, int)
    if fixed:
        of_nodes, nodes = number_by_value(zip(*(p.variant_of.tolist() for p in fixed), strict=True))
    if rooted:
        found, offsets = number_by_value(zip(*(p.variant_of.tolist() for p in rooted), strict=True))
        of_offsets = len(nodes) + found
    variants = []
    for program in programs:
        # A representative, node or offset, of each common variant.
        at = np.append(nodes, np.full_like(offsets, nodes[0]))
        if program.by_offset:
            at = np.append(np.full_like(nodes, offsets[0]), offsets)
        variants.append(program.variant_of[at])
    return of_nodes, of_offsets, variants


def _join_memories(
    programs: Sequence[Program], *, share_messages: bool
) -> tuple[list[Memory], list[IntArray], list[int]]:
    """Return the memories of a node in the merged program; many serve several forms.

    Each of `programs` is one form. All forms share the memories for words that arrive or are
    computed, first those for the same in-ports. Messages of two forms share a memory only if both
    forms keep them at equal addresses, or if `share_messages` is true. Why: the host writes a
    message before the run chooses the form.

    Returns
    -------
    joint : list of Memory
        Common memories.
    numbers : list of ndarray of int
        For each program, the common number of each of its memories.
    layouts : list of int
        For each program, a number that is equal for programs that keep messages at equal addresses.
    """
    joint, all_numbers, all_layouts = list[Memory](), list[IntArray](), list[int]()
    known: dict[Hashable, int] = {}
    layouts: dict[Hashable, int] = {}
    ranks: dict[int, list[int]] = {}
    for program in programs:
        layout = layouts.setdefault(message_layout_key(program), len(layouts))
        all_layouts.append(layout)
        first_own = first_own_memory(program.memories)
        # The deepest memories of all layouts share one, then the next, and so on.
        deepest = np.argsort(-program.depth.max(axis=0)[first_own:], kind="stable")
        rank = ranks.setdefault(layout, np.argsort(deepest).tolist())
        keys, times = list[tuple[object, int | None]](), Counter[object]()
        for memory in program.memories[:first_own]:
            keys.append((memory.ports, times[memory.ports]))
            times[memory.ports] += 1
        keys += [(number, None if share_messages else layout) for number in rank]
        taken, numbers = {known.get(key) for key in keys}, list[int]()
        for key, memory in zip(keys, program.memories, strict=True):
            if key not in known or known[key] in numbers:
                # No two forms run at once, so they can share any memory of arriving words. Two
                # memories of this form may be one in other forms.
                free = (k for k, each in enumerate(joint) if not (each.own or k in taken))
                alike = lambda k, ports=memory.ports: len({*joint[k].ports} & {*ports})
                new = len(joint)
                known[key] = new if memory.own else max(free, key=alike, default=new)
                taken.add(known[key])
            at = known[key]
            numbers.append(at)
            if at == len(joint):
                joint.append(replace(memory, layout=0 if share_messages else layout))
            ports = tuple(sorted({*joint[at].ports, *memory.ports}))
            joint[at] = replace(joint[at], ports=ports)
        all_numbers.append(np.array(numbers))
    return joint, all_numbers, all_layouts


def message_layout_key(program: Program) -> Hashable:
    """Return a key for the addresses at which a program keeps the message to send.

    Two programs with equal keys keep all words of a message at equal addresses.
    """
    mapped, layout = program.form.send_map, program.layout
    facts = program.schedule.chunks, layout.part_chunks, layout.send_parts, layout.in_shares
    tables = [mapped.memory - first_own_memory(program.memories), mapped.base]
    tables += [
        table for each in mapped.coordinates for table in (each.node_values, each.part_values)
    ]
    groups = tuple(program.groups.port_in_topology) if mapped.coordinates else ()
    return facts, groups, *((table.shape, table.tobytes()) for table in tables)


class _Injection(NamedTuple):
    """An injection port, an input of the router for words that *readers* read from memories.

    It is the port of one form, or the merged port of several forms. The *points* are all out-ports,
    and all operators behind in-ports.

    Parameters
    ----------
    feeds : ndarray of bool, shape (variants, points)
        True for each point that takes words from the injection port, at each variant (set of nodes
        that act alike).
    reads : set of int
        Memories that its readers read.
    readers : int
        Number of its readers; the words of several are combined.
    at : ndarray of bool, shape (variants,)
        True for each variant whose nodes have the injection port.
    """

    feeds: BoolArray
    reads: set[int]
    readers: int
    at: BoolArray

    def merge_with(self, other: _Injection) -> _Injection:
        """Return the merged injection port, which serves in place of this one and `other`."""
        readers = max(self.readers, other.readers)
        return _Injection(self.feeds | other.feeds, self.reads | other.reads, readers, self.at)


class _Crossbar(NamedTuple):
    """The multiplexers in front of all points: out-ports, and operators behind in-ports.

    Parameters
    ----------
    inputs : ndarray of int, shape (variants, points)
        Number of inputs of each multiplexer, at each variant (set of nodes that act alike).
    nodes : ndarray of int, shape (variants,)
        Number of nodes of each variant.
    """

    inputs: IntArray
    nodes: IntArray

    def input_cost(self, feeds: BoolArray) -> float:
        """Return the LUTs, for a node and bit, that further inputs take: one where `feeds`."""
        more = _selection_luts(self.inputs + feeds) - _selection_luts(self.inputs)
        return float(self.nodes @ (more + INPUT * feeds).sum(axis=1)) / int(self.nodes.sum())

    def merge_cost(self, one: _Injection, other: _Injection) -> float:
        """Return the LUTs, for a node and bit, that `one` takes if it is merged with `other`.

        The cost is `NEVER` if not exactly the same nodes have both ports; they must then not be
        merged.
        """
        if (one.at != other.at).any():
            return NEVER
        words, both = len(other.reads), len(one.reads | other.reads)
        choice = _selection_luts(np.array(both)) - _selection_luts(np.array(words))
        return (
            self.input_cost(one.feeds & ~other.feeds)
            + float(choice)
            + MEMORY * (both - words)
            + READER * abs(one.readers - other.readers)
        )


def _selection_luts(inputs: IntArray) -> IntArray:
    """Return the LUTs, for each bit, of multiplexers with some numbers of inputs."""
    luts: IntArray = np.where(inputs > 1, (inputs + 1) // 2, 0)
    return luts


def _common_injections(
    loops: Sequence[Loop],
    memories: Sequence[IntArray],
    variants: Sequence[IntArray],
    nodes: IntArray,
) -> tuple[list[list[int]], list[int]]:
    """Decide which injection ports of different forms are merged, and number the merged ports.

    An injection port is an input of the router for words that *readers* read from memories. Each
    pair of ports has a cost in LUTs (`_Crossbar.merge_cost`), and the sum of all costs is
    minimized, form by form.

    Parameters
    ----------
    loops : sequence of Loop
        Rows of each form.
    memories : sequence of (ndarray of int)
        For each form, the common number of each of its memories.
    variants : sequence of (ndarray of int)
        For each form, its variant for each common variant (set of nodes that act alike).
    nodes : ndarray of int
        Number of nodes of each common variant; empty if any node can act as any variant, so that
        all nodes have equal injection ports.

    Returns
    -------
    numbers : list of (list of int)
        For each form, the number of the merged port for each of its injection ports.
    readers : list of int
        Number of readers of each merged port.
    """
    at_any = not len(nodes)
    nodes = np.ones(1, int) if at_any else nodes
    fed: list[BoolArray] = []
    for loop, of_form in zip(loops, variants, strict=True):
        each = _find_fed_points(loop)
        fed.append(each.max(axis=0, keepdims=True) if at_any else each[of_form])
    forms = [
        _list_injections(loop, numbers, of_form[:0] if at_any else of_form, points)
        for loop, numbers, of_form, points in zip(loops, memories, variants, fed, strict=True)
    ]
    inputs = _count_other_inputs(loops, fed)
    numbers: list[list[int]] = [[] for _ in loops]
    common: list[_Injection] = []
    for form in sorted(range(len(loops)), key=lambda k: -len(forms[k])):
        chosen = [*range(len(forms[form]))]
        if common:
            # Here, because only several forms need it, and the import takes longer than compiling
            # a small form.
            from scipy.optimize import linear_sum_assignment

            crossbar = _Crossbar(inputs + sum(each.feeds.astype(int) for each in common), nodes)
            costs = np.zeros((len(chosen), len(common) + len(chosen)))
            for row, one in zip(costs, forms[form], strict=True):
                row[: len(common)] = [crossbar.merge_cost(one, other) for other in common]
                row[len(common) :] = crossbar.input_cost(one.feeds) + PORT
            chosen = linear_sum_assignment(costs)[1].tolist()
        known = len(common)
        for one, number in zip(forms[form], chosen, strict=True):
            if number < known:
                common[number] = common[number].merge_with(one)
            else:
                number = len(common)
                common.append(one)
            numbers[form].append(number)
    return numbers, [one.readers for one in common]


def _find_fed_points(loop: Loop) -> BoolArray:
    """Return the sources that each point of the crossbar selects in some row of a form.

    The result has the shape (variants, points, sources + 1); the last source stands for none.
    """
    points = [(action, port) for action in (Action.SELECT, Action.OPERAND)
              for port in range(loop.n_ports)]  # fmt: skip
    found = np.zeros((loop.n_variants, len(points), loop.sources.identity + 2), bool)
    for number, point in enumerate(points):
        found[np.arange(loop.n_variants), number, loop.point_values(*point)] = True
    return found


def _count_other_inputs(loops: Sequence[Loop], fed: Sequence[BoolArray]) -> IntArray:
    """Return the inputs of each point, shape (variants, points), that are no injection ports.

    `fed` has the result of `_find_fed_points` for each loop.
    """
    every: dict[Source, BoolArray] = {}
    for loop, of_form in zip(loops, fed, strict=True):
        for number, source in enumerate(loop.sources.by_number):
            if source[0] not in (Stage.INJECTION, Stage.IDENTITY):
                selected = of_form[..., number]
                every[source] = every.get(source, selected) | selected
    inputs: IntArray = np.sum([*every.values()], axis=0, dtype=int)
    return inputs


def _list_injections(
    loop: Loop, memories: IntArray, variants: IntArray, fed: BoolArray
) -> list[_Injection]:
    """Return the injection ports of one form, with their connections, in order.

    `loop` has the rows of the form. `memories` and `variants` are the entries for this form in
    `_common_injections`; there are no variants if all nodes have equal injection ports. `fed` has
    the points that each source feeds.
    """
    found = []
    for number, readers in enumerate(loop.sources.injections):
        values = np.array([loop.point_values(Action.MEMORY, reader) for reader in readers])
        read = np.unique(values)
        at = (values != IDLE).any(axis=(0, 1))[variants]
        known = set(memories[read[read >= 0]].tolist())
        feeds = fed[..., loop.sources.first_injection + number]
        found.append(_Injection(feeds, known, len(readers), at))
    return found
