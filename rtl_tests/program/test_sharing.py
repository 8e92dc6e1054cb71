"""Resources that programs share: memories among readers, and injection ports among modes."""

import numpy as np
import pytest
from helpers import check_jobs

import torusfabric as tf
from torusfabric.program import Action
from torusfabric.program.spread import spread_injections


@pytest.mark.parametrize("topology", ["3x4", "5", "arrowhead:1"])
def test_a_scatter_from_any_root_keeps_no_copies(topology):
    """Each send memory of a node has one reader, and together they hold each word once."""
    program = tf.compile(tf.plan(topology, "scatter"), flits=4, root="any")
    own = [number for number, memory in enumerate(program.memories) if memory.own]
    readers = [
        f for f in program.loop.fields_of_action(Action.MEMORY) if np.isin(f.values, own).any()
    ]
    assert len(own) == len(readers) > 1
    assert int(program.depth[0, own].sum()) == program.send_words


def injections(loops, port):
    """The set of injection ports from which an out-port selects in some loops."""
    sources = {
        source for loop in loops for source in np.unique(loop.selected_sources[..., port]).tolist()
    }
    return {source for source in sources if source >= loops[0].sources.first_injection}


@pytest.mark.parametrize(
    ("topology", "names", "options"),
    [
        ("2x3", ("allgather", "alltoall"), {}),
        ("3x3", ("alltoall", "allgather", "broadcast"), {}),
        ("4", ("scatter", "alltoall"), {}),
        ("2x3", ("scatter", "gather", "alltoall"), {"root": "any"}),
    ],
)
def test_out_ports_share_no_injection_ports(topology, names, options):
    """Each out-port selects one injection port, in all modes, and all words move as before."""
    schedules = [tf.plan(topology, name) for name in names]
    program = tf.compile(schedules, max_flits=6, **options).arrange_messages(shared=True)
    spread = spread_injections(program, most=program.ports)

    def count_injections(program):
        loops = [form.loop for form in program.forms]
        return [len(injections(loops, port)) for port in range(program.ports)]

    assert max(count_injections(program)) > max(count_injections(spread)) == 1
    check_modes_alike(program, spread)


def check_modes_alike(program, other):
    """Check that two programs deliver the same words in the same cycles."""
    rng = np.random.default_rng(1)
    for number, mode in enumerate(program.modes):
        for length in (1, 6):
            form = program.form_of(number, length)
            words = program.part(form).layout.send_words(length)
            words = rng.integers(0, 1 << 16, (program.topology.nodes, words), dtype=np.uint64)
            choices = {"mode": number, "length": length} | ({"root": 1} if mode.any_root else {})
            first, second = (each.execute(words, **choices) for each in (program, other))
            assert (first == second).all()
            assert program.cycles(**choices) == other.cycles(**choices)


def test_some_programs_keep_their_injection_ports():
    """The readers of a program stay the same if it has operators, or too many readers."""
    for names, most in ((("allreduce", "alltoall"), 4), (("broadcast", "alltoall"), 1)):
        schedules = [tf.plan("3x3", name) for name in names]
        program = tf.compile(schedules, max_flits=4).arrange_messages(shared=True)
        assert spread_injections(program, most) is program


@pytest.mark.parametrize("names", [("alltoall", "exchange"), ("allreduce", "alltoall")])
def test_further_injection_ports_of_an_out_port_take_no_luts(names):
    """In an engine, an out-port has the LUTs of the mode with the most injection ports at it."""
    schedules = [tf.plan("3x3", name) for name in names]
    together = [form.loop for form in tf.compile(schedules, max_flits=4).forms]
    alone = [tf.compile(schedule, max_flits=4).loop for schedule in schedules]
    for port in range(schedules[0].topology.ports):
        most = max(len(injections([loop], port)) for loop in alone)
        further = len(injections(together, port)) - most
        inputs = {
            source
            for loop in together
            for source in np.unique(loop.selected_sources[..., port]).tolist()
        } - {-1}
        assert (len(inputs) + 1) // 2 == (len(inputs) - further + 1) // 2


def engine(*names, topology="3x3"):
    """The program of several collectives, for messages of up to 4 flits."""
    return tf.compile([tf.plan(topology, name) for name in names], max_flits=4)


def count_memories(program, *, own):
    return sum(memory.own == own for memory in program.memories)


ENGINES = [
    ("3x3", ("allgather", "alltoall", "allreduce")),
    ("4x4", ("allreduce", "alltoall")),
    ("2x3", ("alltoall", "allreduce", "scatter")),
    ("3x3", ("reduce", "broadcast", "scatter")),
    ("2x2", ("allgather@1", "allgather@0", "allreduce", "alltoall")),
]


@pytest.mark.parametrize(("topology", "names"), ENGINES)
def test_modes_share_the_memories_of_arriving_words(topology, names):
    """An engine has as many memories of arriving words as the mode that has most."""
    program = engine(*names, topology=topology)
    alone = [count_memories(part, own=False) for part in program.parts]
    assert count_memories(program, own=False) == max(alone)
    ports = [{*memory.ports} for memory in program.memories]
    every = [memory for part in program.parts for memory in part.memories]
    assert all(any(ports_of >= {*memory.ports} for ports_of in ports) for memory in every)
    jobs = [tf.Job(mode=k % len(names), length=1 + k % 4) for k in range(9)]
    check_jobs(tf.Fabric(program, width=8), jobs)


@pytest.mark.parametrize(("topology", "names"), ENGINES)
def test_messages_of_streams_share_memories(topology, names):
    """Messages of all modes have as many memories as those of one mode, and as deep ones."""
    program = engine(*names, topology=topology)
    together = program.arrange_messages(shared=True)
    own = [k for k, memory in enumerate(together.memories) if memory.own]
    depths = [np.sort(part.depth.max(axis=0)[count_memories(part, own=False):])[::-1]
              for part in program.parts]  # fmt: skip
    wanted = np.max([np.pad(each, (0, len(own) - len(each))) for each in depths], axis=0)
    assert sorted(together.depth.max(axis=0)[own]) == sorted(wanted)
    fabric = tf.Fabric(program, width=8, top="stream")
    assert count_memories(fabric.program, own=True) == len(wanted)


@pytest.mark.parametrize(
    ("topology", "names"),
    [
        ("4x4", ("allreduce", "alltoall")),
        ("3x5", ("allgather", "allreduce")),
        ("2x3", ("alltoall", "allreduce", "reduce")),
        ("4x3", ("allreduce@0", "allgather")),
        ("4x4", ("allreduce@{0,1,5}", "alltoall")),
    ],
)
def test_sums_lie_in_the_memory_of_their_in_port(topology, names):
    """Words of trees lie in the memory of the in-port, if other modes have such memories."""
    program = engine(*names, topology=topology)
    ports = program.topology.ports
    for form in program.forms:
        for memory in range(count_memories(program, own=False)):
            source = form.loop.point_values(Action.SOURCE, memory)
            stores = form.loop.point_values(Action.WRITE, memory) >= 0
            assert {*source[stores & (source < ports)].tolist()} <= {memory}
    jobs = [tf.Job(mode=k % len(names), length=1 + k % 4) for k in range(9)]
    check_jobs(tf.Fabric(program, width=8), jobs)


def test_a_host_writes_the_message_of_each_mode():
    """The fabric of a program with shared messages has memories of their own at a host port."""
    together = engine("allgather", "alltoall").arrange_messages(shared=True)
    assert count_memories(together, own=True) == 4
    fabric = tf.Fabric(together, width=8)
    assert count_memories(fabric.program, own=True) == 6
    check_jobs(fabric, [tf.Job(mode=k, length=3) for k in (1, 0)])
    one = tf.compile(tf.plan("3x3", "allgather"), max_flits=4)
    assert one.arrange_messages(shared=True) is one
