"""Programs of all kinds, executed: every node ends with the words that its collective promises."""

import numpy as np
import pytest

import torusfabric as tf
from torusfabric.program import Order

#: Blocks, sums, trees and circuits; options under which nodes plan memories of several kinds.
SCHEDULES = [
    ("3x3", "allgather", "hamiltonian", {}),
    ("3x3", "allgather", "hamiltonian", {"link_latency": 2}),
    ("4x4", "alltoall", "matching", {}),
    ("2x2x2", "halo", "matching", {"chunks": 3}),
    ("4x3~1", "halo", "matching", {"chunks": 3}),
    ("circulant:9:1,2", "exchange", "matching", {"chunks": 2}),
    ("4x4", "alltoall", "necklace", {"link_latency": 3}),
    ("3x3", "broadcast", "diagonal", {}),
    ("mesh:3x3", "alltoall", "any-network", {}),
    ("mesh:2x3", "allreduce", "any-network", {}),
    ("3x3", "reduce-scatter", "matching", {"link_latency": (1, 3)}),
    ("4x4", "allreduce", "necklace", {}),
    ("4x4", "allreduce", "ring-exchange", {}),
    ("3x3", "allreduce", "spanning-tree", {"link_latency": (3, 1)}),
    ("5", "scatter", "farthest-first", {}),
    ("4x4", "gather", "farthest-first", {}),
    ("2x3", "gather", "max-flow", {"link_latency": 5}),
    ("3x4", "alltoall@1", "matching", {}),
    ("2x3", "scatter", "matching", {"chunks": 2}),
    ("2x3", "reduce-scatter", "matching", {"chunks": 2}),
    ("4x6", "allreduce", "matching", {"latency": 3}),
    ("3x3x3", "reduce-scatter", "matching", {"latency": 3}),
    ("arrowhead:1", "allreduce", "matching", {}),
    ("4x4", "reduce-scatter", "necklace", {}),
    ("5x5", "reduce", "necklace", {"chunks": 5, "root": 12}),
    ("4x4", "reduce", "diagonal", {"ports": 1}),
    ("5x5", "reduce", "lee-code", {}),
    ("arrowhead:2", "reduce", "max-flow", {"root": 3}),
]

#: Schedules whose root is chosen at each run.
ANY_ROOT = [
    ("3x3", "broadcast", "diagonal", {}),
    ("4x4", "broadcast", "necklace", {}),
    ("3x3", "broadcast", "spanning-tree", {"link_latency": 2}),
    ("4x4", "scatter", "farthest-first", {}),
    ("3x3", "scatter", "matching", {}),
    ("4x4", "gather", "farthest-first", {}),
    ("3x3", "reduce", "spanning-tree", {}),
    ("4x3", "scatter@0", "farthest-first", {}),
]


def wrong_words(program, **run):
    """The number of wrong words after a run of random words."""
    number = program.form_of(run.get("mode"), run.get("length"))
    layout = program.part(number).layout
    shape = program.topology.nodes, layout.send_words(run.get("length") or program.flits)
    words = np.random.default_rng(1).integers(0, 1 << 40, shape, np.uint64)
    expected, receives = program.delivered(words, **run)
    return int(((program.execute(words, **run) != expected) & receives).sum())


@pytest.mark.parametrize(("topology", "collective", "algorithm", "options"), SCHEDULES)
def test_of_one_length_and_of_any(topology, collective, algorithm, options):
    schedule = tf.plan(topology, collective, algorithm=algorithm, **options)
    for flits in (1, 3):
        assert wrong_words(tf.compile(schedule, flits=flits * schedule.chunks)) == 0
    program = tf.compile(schedule, max_flits=6 * schedule.chunks)
    for length in {1, schedule.chunks + 1, 6 * schedule.chunks}:
        assert wrong_words(program, length=length) == 0


@pytest.mark.parametrize(("topology", "collective", "algorithm", "options"), ANY_ROOT)
def test_from_and_to_each_root(topology, collective, algorithm, options):
    schedule = tf.plan(topology, collective, algorithm=algorithm, **options)
    program = tf.compile(schedule, max_flits=3 * schedule.chunks, root="any")
    for root in (0, 1, program.groups.group_size - 1):
        assert wrong_words(program, root=root, length=schedule.chunks + 1) == 0


@pytest.mark.parametrize("names", [
    ("allgather", "alltoall", "allreduce@0"), ("broadcast", "scatter", "gather"),
    ("exchange", "reduce", "reduce-scatter@1"), ("scatter", "alltoall@0", "halo"),
])  # fmt: skip
@pytest.mark.parametrize("root", [None, "any"])
def test_of_several_modes(names, root):
    program = tf.compile([tf.plan("4x4", name) for name in names], max_flits=5, root=root)
    for mode, length in ((0, 5), (1, 2), (2, 5), (1, 5)):
        chosen = 3 if program.modes[mode].any_root else None
        assert wrong_words(program, mode=mode, length=length, root=chosen) == 0


def test_readers_that_a_mode_does_not_need():
    """Readers that a mode does not need read the neutral word of the operator, which for a minimum
    is not 0.
    """
    plans = [tf.plan("4x4", "reduce", algorithm=name) for name in ("max-flow", "diagonal")]
    program = tf.compile(plans, max_flits=4, operators=["min"])
    assert [len(part.loop.sources.injections[0]) for part in program.parts] == [9, 7]
    assert [wrong_words(program, mode=mode) for mode in (0, 1)] == [0, 0]


def test_flit_by_flit_nodes_store_alike():
    """A scatter of one chunk runs in flit order. With two chunks nodes store unlike blocks, and it
    runs in row order.
    """
    for chunks, order in ((1, Order.FLIT), (2, Order.ROW)):
        program = tf.compile(tf.plan("5", "scatter", algorithm="matching", chunks=chunks), flits=4)
        assert program.loop.order is order
        assert wrong_words(program) == 0


@pytest.mark.parametrize(
    ("lengths", "chunks", "flits"),
    [
        ({"flits": 4}, [0, 0, 1, 1], [0, 1, 0, 1]),
        ({"max_flits": 4}, [0, 1, 0, 1], [0, 0, 1, 1]),
    ],
)
def test_words_of_a_message_lie_in_its_chunks(lengths, chunks, flits):
    """Chunks of a message lie in sequence for a fixed length, and interleaved for any length."""
    program = tf.compile(tf.plan("4", "alltoall", algorithm="matching", chunks=2), **lengths)
    part, chunk, flit = program.locate(np.arange(16), 4)
    assert part.tolist() == np.repeat(np.arange(4), 4).tolist()
    assert chunk.tolist() == 4 * chunks
    assert flit.tolist() == 4 * flits


#: Words that a user may give: plain lists, and integers with a sign.
WORDS = [[-1, 3], [5, 4], [-7, -8]]


@pytest.mark.parametrize(("operator", "result"), [("add", [-3, -1]), ("max:signed", [5, 4])])
def test_integers_with_a_sign(operator, result):
    """Results of signed words are signed and have the type of the words."""
    program = tf.compile(tf.plan("3", "allreduce"), flits=2, operators=[operator])
    received = program.execute(np.array(WORDS))
    assert received.dtype == np.int64
    assert received.tolist() == [result] * 3


def test_sums_of_narrow_words():
    """Sums of 8-bit words are taken modulo 256."""
    program = tf.compile(tf.plan("3", "allreduce"), flits=2)
    assert program.execute(np.array(WORDS), width=8).tolist() == [[253, 255]] * 3


def test_lists():
    """Words may be given as plain lists."""
    program = tf.compile(tf.plan("3", "allgather"), flits=2)
    assert program.execute(WORDS)[0].tolist() == [-1, 3, 5, 4, -7, -8]
