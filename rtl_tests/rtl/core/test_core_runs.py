"""A core delivers every word that `Program.execute` predicts, in the cycles of `Program.cycles`."""

import pytest
from core_runs import CoreJob, core_faults

import torusfabric as tf
from torusfabric.errors import InputError
from torusfabric.rtl.core import Core


def plan(topology, name):
    """A plan by `collective` or `collective:algorithm`."""
    collective, _, algorithm = name.partition(":")
    options = {"algorithm": algorithm} if algorithm else {}
    return tf.plan(topology, collective, **options)


FIXED = [
    ("3x3", "allgather:hamiltonian", 4),
    ("3x3", "alltoall:matching", 4),
    ("3x3", "broadcast:spanning-tree", 8),
    ("2x2", "allgather:bufferless", 3),
    ("3x3", "reduce-scatter:matching", 4),
    ("3x3", "allreduce:spanning-tree", 4),
    ("4", "allreduce:ring-exchange", 2),
    ("cube:3", "gather", 2),
]


@pytest.mark.parametrize(("topology", "collective", "flits"), FIXED)
def test_runs_of_a_fixed_length_are_right(topology, collective, flits):
    program = tf.compile(plan(topology, collective), flits=flits)
    assert not core_faults(program, [CoreJob()] * 2)


ANY = [
    ("3x3", "allgather:matching"),
    ("3x3", "broadcast:spanning-tree"),
    ("2x3", "reduce-scatter:matching"),
    ("3x3", "allreduce:spanning-tree"),
    ("4", "allreduce:ring-exchange"),
    ("2x3!0:+1=3", "allreduce:any-network"),
    ("4x4", "broadcast:max-flow"),
]


@pytest.mark.parametrize(("topology", "collective"), ANY)
def test_runs_choose_their_length(topology, collective):
    program = tf.compile(plan(topology, collective), max_flits=8)
    assert not core_faults(program, [CoreJob(length=length) for length in (8, 1, 2, 5, 7)])


@pytest.mark.parametrize(
    ("topology", "collective", "beat"),
    [
        ("3x3", "alltoall:matching", 2),
        ("3x3", "allgather:matching", 4),
        ("3x3", "allreduce:spanning-tree", 4),
        ("4", "allreduce:ring-exchange", 8),
    ],
)
@pytest.mark.parametrize("options", [{"flits": 32}, {"max_flits": 11}])
def test_memory_ports_move_several_flits(topology, collective, beat, options):
    program = tf.compile(plan(topology, collective), **options).by_beats(beat)
    lengths = (11, 1, 6) if program.any_length else (None, None)
    assert not core_faults(program, [CoreJob(length=length) for length in lengths], beat=beat)


@pytest.mark.parametrize(
    ("options", "beat", "message"),
    [
        ({"flits": 4}, 3, "Beat must be a power of two, not 3"),
        ({"flits": 6}, 4, "Beat must be at most 2 for 6-flit blocks, not 4. Choose flits or"),
        ({"max_flits": 5}, 2, r"Beat must be at most 1 for .* not 2. Use program.by_beats\(2\)"),
    ],
)
def test_a_beat_that_does_not_divide_blocks_is_refused(options, beat, message):
    program = tf.compile(plan("3x3", "alltoall"), **options)
    with pytest.raises(InputError, match=message):
        Core(program, 8, beat=beat)


@pytest.mark.parametrize("options", [{"max_flits": 4}, {"flits": 3}])
def test_runs_choose_their_mode(options):
    plans = [plan("3x3", name) for name in ("reduce", "allgather:hamiltonian", "alltoall")]
    program = tf.compile(plans, **options)
    lengths = (program.flits, 1) if program.any_length else (None, None)
    jobs = [CoreJob(mode=mode, length=length) for length in lengths for mode in range(3)]
    assert not core_faults(program, jobs)


def test_forms_serve_for_some_lengths():
    forms = [plan("4", f"allreduce:{name}") for name in ("ring-exchange", "matching")]
    program = tf.compile([forms], max_flits=8)
    assert not core_faults(program, [CoreJob(length=length) for length in range(1, 9)])


ROOTED = ["broadcast", "reduce", "gather", "scatter", "broadcast:spanning-tree"]


@pytest.mark.parametrize("collective", ROOTED)
def test_runs_choose_their_root(collective):
    program = tf.compile(plan("3x3", collective), max_flits=4, root="any")
    assert not core_faults(program, [CoreJob(length=3, root=root) for root in (0, 4, 7)])


@pytest.mark.parametrize("collective", ["reduce", "scatter"])
def test_a_run_of_a_fixed_length_knows_its_root_in_time(collective):
    program = tf.compile(plan("3x3", collective), flits=2, root="any")
    assert not core_faults(program, [CoreJob(root=root) for root in (5, 4, 0)])


def test_chunks_of_sums_for_any_root():
    program = tf.compile(plan("4x4", "reduce"), max_flits=4, root="any")
    assert not core_faults(program, [CoreJob(length=4, root=5)])


@pytest.mark.parametrize("collective", ["allreduce:matching", "reduce"])
def test_runs_choose_their_operator(collective):
    operators = ["add", "max", "min:signed", "xor"]
    program = tf.compile(plan("2x3", collective), max_flits=3, operators=operators)
    assert not core_faults(program, [CoreJob(length=3, operation=k) for k in range(4)])


def test_links_of_several_cycles():
    torus = tf.Torus(2, 3, link_latency=3)
    program = tf.compile(tf.plan(torus, "allgather"), flits=3)
    assert not core_faults(program, [CoreJob()] * 2)
