"""The path of a word: its cycles are those of the trace, and its stages name existing code."""

from dataclasses import replace
from itertools import pairwise, permutations
from pathlib import Path

import numpy as np
import pytest
from helpers import few

import torusfabric as tf
from torusfabric.errors import InputError
from torusfabric.program.follow import Holder, farthest_pair, follow_flit
from torusfabric.program.trace import list_arrivals
from torusfabric.rtl.word_path import stage_code, word_path

ROOT = Path(tf.__file__).parents[1]

CASES = [
    pytest.param("4x4", "allgather:hamiltonian", 3, marks=pytest.mark.long),
    ("3x3", "allgather:matching", 2),
    ("4x4", "broadcast:max-flow", 2),
    ("arrowhead:2", "broadcast:wormhole-forest", 8),
    pytest.param("4x4", "alltoall", 1, marks=pytest.mark.long),
    ("3x4", "alltoall@1", 2),
    ("3x3", "scatter", 2),
    ("4x4", "gather", 1),
    ("2x3", "allreduce", 1),
    ("2x3", "allreduce", 6),
    # Memories hold one sum after another in these cases.
    pytest.param("4x4", "allreduce", 1, marks=pytest.mark.long),
    pytest.param("5x5", "alltoall", 1, marks=pytest.mark.long),
    ("arrowhead:2", "broadcast:spanning-tree", 4),
    pytest.param("4x4", "reduce", 4, marks=pytest.mark.long),
    pytest.param("3x3", "reduce-scatter", 2, marks=pytest.mark.long),
    ("2x3", "allreduce+3", 6),
    ("3x3", "reduce+2", 2),
]


def compiled(topology, words, flits):
    """Compile a schedule; a number after "+" is the latency of its operator."""
    collective, _, latency = words.partition("+")
    schedule = tf.plan(topology, collective)
    slow = replace(tf.Operator.parse("add"), name="slow", latency=int(latency or 0))
    return tf.compile(schedule, flits=flits, operators=[slow] if latency else [])


def links_of(program):
    """Map each cycle, node and out-port to the origins of the word on that link, by the trace."""
    blocks = program.blocks
    members = [blocks.groups.members[group] for group in blocks.groups.group_of_node]
    return {
        (arrival.cycle + flit * arrival.stride - (len(arrival.hops) - 1) + hop, node, port): {
            *members[node][blocks.origin(np.array(arrival.blocks))].tolist()
        }
        for arrival in list_arrivals(program)
        for flit in range(arrival.flits)
        for hop, (node, port) in enumerate(zip(arrival.path, arrival.hops, strict=False))
    }


def pairs_of(program):
    """Yield the pairs of nodes between which words travel."""
    collective = program.schedule.collective
    size, members = program.groups.group_size, program.groups.members
    for group in members.tolist():
        for a, b in permutations(range(size), 2):
            if collective.single_origin and a != collective.root:
                continue
            if collective.to_root and b != collective.root:
                continue
            yield group[a], group[b]


@pytest.mark.parametrize(("topology", "words", "flits"), few(5, [*CASES]))
def test_every_word(topology, words, flits):
    """Words are on the links of the trace in its cycles, and the last word ends the run."""
    program = compiled(topology, words, flits)
    neighbours, links, last, most = program.topology.neighbours, links_of(program), 0, 0
    for origin, destination in pairs_of(program):
        for flit in sorted({0, min(program.block_flits, flits) - 1, flits - 1}):
            moments = follow_flit(program, origin, destination, flit)
            assert moments[0][:3] == (0, Holder.MEMORY, origin)
            assert moments[-1][1:3] == (Holder.MEMORY, destination)
            assert all(a.cycle < b.cycle for a, b in pairwise(moments[1:]))
            on_links = [m for m in moments if m.holder is Holder.LINK]
            assert all(origin in links[m.cycle, m.node, m.number] for m in on_links)
            after = [neighbours[m.node, m.number] for m in on_links]
            assert [m.node for m in on_links] == [origin, *after[:-1]]
            assert after[-1] == destination
            last, most = max(last, moments[-1].cycle), max(most, len(on_links))
    assert last == program.cycles()
    far = [m for m in follow_flit(program, *farthest_pair(program)) if m.holder is Holder.LINK]
    if not program.schedule.collective.reducing:
        assert len(far) == most


@pytest.mark.parametrize(("topology", "words", "flits"), few(6, [*CASES]))
def test_stages_are_where_they_say(topology, words, flits):
    """Stages follow one another in cycles, except in memories and slow operators, and each names
    the line of its code.
    """
    program = compiled(topology, words, flits)
    path = word_path(program, *farthest_pair(program))
    assert path[1].cycle >= program.timing.run_setup
    for a, b in pairwise(path[1:]):
        inside = program.loop.sources.latency and "operator" in a.what + b.what
        assert 0 <= b.cycle - a.cycle <= 1 or "has stored it" in a.what or inside
    code = stage_code(path)
    for stage in path:
        line = (ROOT / stage.file).read_text().splitlines()[stage.line - 1]
        assert f"def {stage.code.rpartition('.')[2]}(" in line
        assert code[f"{stage.file}:{stage.line}"].startswith(f"{line}\n")
    operators = sum("operator" in stage.what for stage in path)
    assert bool(operators) is program.schedule.collective.reducing


def test_a_contribution_is_in_the_sum():
    """The contributions to one sum have different paths with the same end."""
    program = compiled("3x3", "reduce", 1)
    ways = [follow_flit(program, origin, 0) for origin in range(1, 9)]
    assert len({tuple(way[:-1]) for way in ways}) == 8
    assert len({way[-1] for way in ways}) == 1


@pytest.mark.parametrize(
    ("words", "given", "message"),
    [
        ("allgather", (0, 9), "Destination must be a node from 0 to 8, not 9"),
        ("allgather", (-1, 0), "Origin must be "),
        ("allgather", (4, 4), "Destination must be another node than the origin, not 4"),
        ("allgather@1", (0, 3), r"Destination must be in the group of the origin, .*, not 3"),
        ("broadcast", (3, 4), "Origin must be the root, node 0, not 3"),
        ("gather", (3, 4), "Destination must be the root, node 0, not 4"),
        ("allgather", (0, 1, 2), "Flit must be from 0 to 1, not 2"),
    ],
)
def test_what_does_not_go_anywhere(words, given, message):
    """Nodes and flits without a path are refused."""
    with pytest.raises(InputError, match=message):
        word_path(compiled("3x3", words, 2), *given)


def test_any_root_is_refused():
    """A program of any root is refused, because its paths depend on the run."""
    program = tf.compile(tf.plan("3x3", "broadcast"), root="any")
    with pytest.raises(InputError, match=r"followed only from a fixed root; compile"):
        follow_flit(program, 0, 1)
