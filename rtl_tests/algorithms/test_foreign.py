"""Imported schedules: the node of each rank, and the step of each transfer."""

from random import Random

import msccl_generators as generators
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import torusfabric as tf
from torusfabric.algorithms.foreign.placement import place_ranks
from torusfabric.schedule.foreign.dataflow import read_dataflow

RING, DOUBLING = generators.ring_allgather, generators.recursive_doubling_allgather
ROWS, HALVING = generators.hierarchical_allgather, generators.halving_reduce_scatter
BOTH = generators.halving_doubling_allreduce

#: File, topology, map, expected form and expected steps of known algorithms.
CASES = {
    "ring": (RING(8), "8", "identity", "pattern", 7),
    "ring, two chunks": (RING(5, 2), "5", "identity", "table", 8),
    "ring on a torus": (RING(8), "2x4", "auto", "pattern", 7),
    "ring on odd sides": (RING(15), "3x5", "auto", "pattern", 14),
    "ring on three axes": (RING(12), "2x2x3", "auto", "pattern", 11),
    "pair": (RING(2), "2", "identity", "pattern", 1),
    "doubling": (DOUBLING(16), "4x4", "gray", "rounds", 15),
    "doubling, found": (DOUBLING(16), "4x4", "auto", "rounds", 15),
    "doubling on sides of two": (DOUBLING(8), "2x2x2", "gray", "rounds", 4),
    "doubling on three axes": (DOUBLING(64), "4x4x4", "gray", "rounds", 63),
    "rows and columns": (ROWS(3, 4), "3x4", "identity", "rounds", 11),
    "columns and rows": (ROWS(4, 3), "3x4", "auto", "rounds", 11),
    "rows and columns, searched": (ROWS(4, 4), "2x2x4", "auto", "rounds", 15),
    "sums around a ring": (generators.ring_allreduce(5), "5", "identity", "pattern", 8),
    "shares around a ring": (generators.ring_reduce_scatter(5), "5", "identity", "pattern", 4),
    "sums of all pairs": (generators.all_pairs_allreduce(3, 2), "3", "identity", "table", 8),
    "halving": (HALVING(16), "4x4", "gray", "rounds", 15),
    "halving and doubling": (BOTH(16), "4x4", "gray", "rounds", 30),
}


@pytest.fixture
def load(tmp_path):
    """A function that imports the text of a file."""

    def load(text, topology, placement="identity", **options):
        path = tmp_path / "file.xml"
        path.write_text(text)
        return tf.import_schedule(path, topology, placement=placement, **options)

    return load


@pytest.mark.parametrize("name", CASES)
def test_published_algorithms(load, name):
    """Each published algorithm is correct, and takes its known number of steps."""
    text, topology, placement, form, steps = CASES[name]
    schedule = load(text, topology, placement)
    tf.check(schedule)
    assert (schedule.form, schedule.steps) == (form, steps)


def test_peers_that_are_no_neighbours(load):
    """Ranks that exchange messages must be neighbours; circuits remove this requirement."""
    text = generators.all_pairs_alltoall(8)
    missing = "Rank 0 sends to rank 2, .* are 2 hops apart on 8 .gpu 0, thread block 3, step 0"
    with pytest.raises(tf.InputError, match=missing):
        load(text, "8")
    schedule = load(text, "8", switching="circuit")
    tf.check(schedule)
    assert schedule.switching == "circuit"
    assert max(int(transfers.lengths.max()) for transfers in schedule.rounds()) >= 4


def test_all_pairs_by_circuits(load):
    """An all-reduce between all pairs, with sums in scratch, can be imported as circuits."""
    schedule = load(generators.all_pairs_allreduce(8, 2), "2x4", switching="circuit")
    tf.check(schedule)
    assert tf.compile(schedule, flits=32).cycles() > 0


def test_there_is_no_such_map(load):
    """A map that does not exist, or is not found in time, is refused."""
    with pytest.raises(
        tf.InputError, match=r"^No map places all peers side by side on 3x3; choose"
    ):
        load(generators.all_pairs_alltoall(9), "3x3", "auto")
    with pytest.raises(tf.InputError, match="No map was found in time"):
        load(ROWS(4, 4), "2x2x4", "auto", seconds=0)
    with pytest.raises(tf.InputError, match=r"Map must be .*, not .grey.* \(did you mean gray\?\)"):
        load(RING(4), "4", "grey")
    with pytest.raises(tf.InputError, match="as many nodes as the file has gpus, 4, not the 5"):
        load(RING(4), "5")
    with pytest.raises(tf.InputError, match=r"a torus of sides 2, 4, 8, .. for gray, not 3x4"):
        load(RING(12), "3x4", "gray")
    with pytest.raises(tf.InputError, match=r"File .* names no topology; give"):
        load(RING(4), None)


def test_map_onto_nodes_that_differ(load):
    """On nodes that differ, the search for a map finds the hub of a star."""
    program = generators.Program("star", "broadcast", 4, 1)
    for target in (1, 2, 3):
        program.move(0, target, 0, 1)
    hub = tf.Graph([(1, 0), (1, 2), (1, 3), (0, 1), (2, 1), (3, 1)])
    schedule = load(program.text(), hub, "auto")
    tf.check(schedule)
    assert schedule.collective.root == 1


def test_map_from_a_file(load, tmp_path):
    """A file can give the map, one node a line; faults in the file are named."""
    path = tmp_path / "map.txt"
    path.write_text("# ring around 2x3\n0\n1\n2\n\n5\n4  # back\n3\n")
    schedule = load(RING(6), "2x3", path)
    tf.check(schedule)
    for text, message in (
        ("0\n1\n2\n3\n4\n6\n", 'must list nodes from 0 to 5, one a line, not "6"'),
        ("0\n1\n2\n3\n4\n4\n", "each of the 6 nodes of 2x3 once, for 6 ranks, not 5 of them in 6"),
    ):
        path.write_text(text)
        with pytest.raises(tf.InputError, match=message):
            load(RING(6), "2x3", path)


@pytest.mark.parametrize("sides", [(4,), (2, 4), (4, 4), (8, 2), (2, 2, 4)])
def test_gray(tmp_path, sides):
    """The gray map puts ranks that differ in one bit on neighbours, for sides of 2 and 4.

    On all sides the ranks of neighbours differ in at most one bit.
    """
    torus = tf.Torus(sides)
    path = tmp_path / "file.xml"
    path.write_text(RING(torus.nodes))
    nodes = place_ranks(read_dataflow(path), torus, "gray")
    assert sorted(nodes) == list(range(torus.nodes))
    rank = np.argsort(nodes)
    apart = rank[:, None] ^ rank[torus.neighbours]
    assert (apart & (apart - 1) == 0).all()
    if max(sides) <= 4:
        bits = nodes[np.arange(torus.nodes)[:, None] ^ (1 << np.arange(len(bin(torus.nodes)) - 3))]
        assert (torus.distance(nodes[:, None], bits) == 1).all()


@pytest.mark.parametrize(
    ("channels", "steps"), [([0, 1], 1), ([0, 0], 1), ([1], 1), ([0, 1, 0], 2)]
)
def test_parallel_links(load, channels, steps):
    """On a side of 2, chunks use the link of their channel, or the other link if it is busy."""
    program = generators.Program("pair", "allgather", 2, 2 * len(channels))
    for rank in range(2):
        for chunk, channel in enumerate(channels):
            at = "o", rank * len(channels) + chunk
            program.add(rank, (1 - rank, -1), "s", at, at, channel=channel)
            program.add(1 - rank, (-1, rank), "r", at, at, channel=channel)
    schedule = load(program.text(), "2")
    tf.check(schedule)
    assert schedule.steps == steps
    first = next(schedule.rounds())
    carried = dict(zip(first.listed.ids.tolist(), first.hops[:, 0].tolist(), strict=True))
    assert carried[0] == channels[0]


@settings(max_examples=25, deadline=None)
@given(st.sampled_from([(5,), (2, 3), (3, 3), (2, 2)]), st.integers(1, 3), st.integers(0, 2**16))
def test_any_flood_is_scheduled(tmp_path_factory, sides, chunks, seed):
    """A random broadcast gives a correct schedule without a needless transfer or an empty step."""
    torus, random = tf.Torus(sides), Random(seed)
    root = random.randrange(torus.nodes)
    program = generators.Program("flood", "broadcast", torus.nodes, chunks)
    reached = [root]
    while len(reached) < torus.nodes:
        source = random.choice(reached)
        new = sorted(set(torus.neighbours[source].tolist()) - set(reached))
        if new:
            target = random.choice(new)
            program.move(source, target, 0, chunks)
            reached.append(target)
    path = tmp_path_factory.mktemp("flood") / "file.xml"
    path.write_text(program.text().replace("<algo ", f'<algo root="{root}" '))
    schedule = tf.import_schedule(path, torus)
    tf.check(schedule)
    assert sum(map(len, schedule.rounds())) == (torus.nodes - 1) * chunks
    assert all(len(transfers) for transfers in schedule.rounds())


@pytest.mark.parametrize("name", ["ring", "rows and columns", "sums around a ring"])
def test_hardware(load, name):
    """An imported schedule runs correctly in hardware, in the predicted cycles."""
    text, topology, placement, _, _ = CASES[name]
    program = tf.compile(load(text, topology, placement))
    result = tf.simulate(tf.Fabric(program, width=8))
    assert result.passed
