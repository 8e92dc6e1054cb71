"""Fabrics whose root is chosen for every run: every root, and roots that do not exist."""

import pytest
from core_bench import run_core
from helpers import check_jobs, expected_words, few, random_messages, simulated, starts_seen
from hypothesis import given, settings
from hypothesis import strategies as st
from verilog_bench import check_in_icarus

import torusfabric as tf
from torusfabric import collective as collectives
from torusfabric.collective import Collective
from torusfabric.rtl.assembly import Assembly
from torusfabric.rtl.netlist import Role
from torusfabric.rtl.tops import RootUnit
from torusfabric.schedule import Masked
from torusfabric.simulation.engines import CompiledEngine
from torusfabric.toolchain import cxx

WIDTH = 9

ROOTED = ["broadcast", "scatter", "gather", "reduce"]

ON_ALL_TOPOLOGIES = [
    ("broadcast", "max-flow"),
    ("scatter", "matching"),
    ("gather", "matching"),
    ("gather", "max-flow"),
    ("reduce", "max-flow"),
]

CASES = [
    ("2x3", "scatter", "matching", {}),
    ("2x3", "gather", "matching", {}),
    ("2x3", "reduce", "max-flow", {}),
    ("5", "gather", "max-flow", {}),
    ("2x3", "scatter@1", "matching", {"chunks": 2}),
    ("2x2", "reduce", "necklace", {"chunks": 2}),
    ("3x3", "broadcast", "diagonal", {}),
    ("arrowhead:1", "broadcast", "spanning-tree", {}),
    ("3x3", "gather", "diagonal", {}),
    ("arrowhead:1", "scatter", "matching", {}),
    ("arrowhead:1", "reduce", "max-flow", {}),
    ("3x3", "scatter", "necklace", {}),
    ("3x3", "reduce", "diagonal", {}),
    ("2x3x2", "gather@0+2", "matching", {"chunks": 3}),
    ("4x4", "reduce@0", "max-flow", {}),
]


def fabric_of(topology, collective, algorithm=None, *, top="host", lengths, **options):
    """A fabric of any root; `lengths` are those of `tf.compile`."""
    schedule = tf.plan(topology, collective, algorithm=algorithm, **options)
    return built(schedule, top=top, lengths=lengths)


def built(schedule, *, top="host", lengths):
    """The fabric of a schedule of any root."""
    return tf.Fabric(tf.compile(schedule, root="any", **lengths), width=WIDTH, top=top)


def masked(topology, collective, algorithm="matching"):
    """A schedule in which all nodes do the same, whichever is the root."""
    whole = {"scatter": "alltoall", "gather": "allgather", "reduce": "allreduce"}[collective]
    schedule = tf.plan(topology, whole, algorithm=algorithm)
    return Masked.of(schedule, Collective(collective, root=0))


def check_execution(program, job, *, width):
    """Execute a job on random words, and compare with what the collective delivers.

    Returns
    -------
    messages, words : ndarray
        What nodes send, and what they have received.
    """
    length = program.length_of(job.length)
    messages = collectives.random_messages(program.layout, length, width=width, seed=job.root)
    executed = program.execute(messages, length=job.length, root=job.root, width=width)
    words, receives = expected_words(program, messages, root=job.root, width=width)
    assert (executed[receives] == words[receives]).all(), job
    assert not executed[~receives].any()
    return messages, executed


@pytest.mark.parametrize(("topology", "collective", "algorithm", "options"), few(4, CASES))
def test_every_root(topology, collective, algorithm, options):
    """One fabric serves every root in turn; nothing of an earlier run shows."""
    fabric = fabric_of(topology, collective, algorithm, lengths={"flits": 3}, **options)
    check_jobs(fabric, [tf.Job(root=root) for root in range(fabric.program.groups.size)])


@pytest.mark.parametrize(
    ("topology", "collective", "algorithm", "options"), few(1, [CASES[3], *CASES[:3], *CASES[4:]])
)
def test_every_root_at_any_length(topology, collective, algorithm, options):
    """Root and length are chosen together."""
    fabric = fabric_of(topology, collective, algorithm, lengths={"max_flits": 4}, **options)
    size = fabric.program.groups.size
    check_jobs(fabric, [tf.Job(root=root, length=1 + 3 * root % 4) for root in range(size)])


MASKED = [
    ("2x3", "scatter", "matching"),
    ("2x3", "reduce", "matching"),
    ("2x2", "gather", "hamiltonian"),
    ("2x4", "gather", "matching"),
    ("arrowhead:1", "reduce", "matching"),
    ("2x2", "reduce", "necklace"),
]


@pytest.mark.parametrize(("topology", "collective", "algorithm"), few(2, MASKED))
def test_every_root_of_a_mask(topology, collective, algorithm):
    """Where all nodes do the same, what is read is of the root, or is read at the root."""
    schedule = masked(topology, collective, algorithm)
    tf.check(schedule)
    fabric = built(schedule, lengths={"max_flits": 4})
    roots = range(fabric.program.groups.size)
    check_jobs(fabric, [tf.Job(root=root, length=1 + 3 * root % 4) for root in roots])
    fixed = built(schedule, lengths={"flits": 3})
    check_jobs(fixed, [tf.Job(root=root) for root in (1, 0)])


def test_a_mask_has_no_roms_in_nodes():
    """Nothing of a reduction by an all-reduce depends on the root."""
    fabric = built(masked("3x3", "reduce"), lengths={"flits": 2})
    roles = {instance.role for instance in fabric.netlist.instances}
    assert not roles & {Role.ROM, Role.ROOT_UNIT}
    with pytest.raises(tf.InputError, match=r"^Root must be any for a schedule that serves all"):
        tf.compile(masked("3x3", "reduce"))


@pytest.mark.long
@pytest.mark.skipif(not cxx.have_compiler(), reason="no C++ compiler")
def test_compiled_engine():
    """The compiled engine agrees."""
    fabric = fabric_of("2x3", "scatter", lengths={"flits": 2})
    check_jobs(fabric, [tf.Job(root=root) for root in (4, 0, 5)], CompiledEngine)


@settings(derandomize=True, deadline=None, max_examples=12)
@given(st.data())
def test_any_program(data):
    """Programs of random topologies, collectives and algorithms, executed for random roots."""
    sides = data.draw(st.lists(st.integers(2, 4), min_size=1, max_size=2))
    name = data.draw(st.sampled_from(["x".join(map(str, sides)), "arrowhead:1"]))
    kind, algorithm = data.draw(st.sampled_from(ON_ALL_TOPOLOGIES))
    schedule = tf.plan(name, kind, algorithm=algorithm)
    most = data.draw(st.integers(1, 5))
    program = tf.compile(schedule, root="any", max_flits=most)
    for _ in range(3):
        root = data.draw(st.integers(0, schedule.topology.nodes - 1))
        check_execution(program, tf.Job(root=root, length=data.draw(st.integers(1, most))), width=9)


@pytest.mark.parametrize("schedule", [tf.plan, masked], ids=["rooted", "masked"])
@pytest.mark.parametrize("collective", few(1, ["scatter", "gather", "reduce"], tuples=True))
def test_verilog_takes_the_root_at_the_start(tmp_path, collective, schedule):
    """Icarus, given the wrong root at all times but at the start, reads the words of the right one.

    It knows nothing but the manifest.
    """
    fabric = built(schedule("2x3", collective), lengths={"flits": 3})
    manifest = check_in_icarus(tmp_path, fabric, root=4)
    assert manifest["collective"] == {"kind": collective, "root": "any"}
    assert manifest["ports"]["error"]["width"] == 4


@pytest.mark.parametrize("schedule", [tf.plan, masked], ids=["rooted", "masked"])
@pytest.mark.parametrize("collective", ["gather", "reduce"])
def test_core(collective, schedule):
    """In a core each node reads as the root; the address map is the same for all roots."""
    topology = "2x4" if collective == "gather" else "2x3"
    fabric = built(schedule(topology, collective), top="core", lengths={"flits": 2})
    messages = random_messages(fabric, 1)
    words, receives = expected_words(fabric.program, messages, root=4, width=WIDTH)
    assert (run_core(fabric, messages, root=4)[receives] == words[receives]).all()


def test_core_of_a_scatter_is_refused():
    """Where a node finds what it has received would depend on the root."""
    with pytest.raises(tf.InputError, match=r"^Top must be host for scatter from any root, not co"):
        fabric_of("2x3", "scatter", top="core", lengths={"flits": 1})


def test_collectives_without_a_root_are_refused():
    with pytest.raises(tf.InputError, match=r"^Root must be left out for allgather"):
        fabric_of("2x3", "allgather", lengths={"flits": 1})


def test_plans_from_other_nodes_are_refused():
    with pytest.raises(tf.InputError, match=r"^Root must be any for a schedule from node 0, not f"):
        fabric_of("2x3", "gather", root=1, lengths={"flits": 1})


class Bench:
    """Drives the host port of a fabric in a testbench of Amaranth's simulator."""

    def __init__(self, ctx, fabric, design):
        self.ctx, self.fabric, self.design = ctx, fabric, design

    async def write(self, messages):
        """Write what all nodes send."""
        self.ctx.set(self.design.host_we, 1)
        for node, words in enumerate(messages.tolist()):
            self.ctx.set(self.design.host_node, node)
            for address, word in enumerate(words):
                self.ctx.set(self.design.host_addr, address)
                self.ctx.set(self.design.host_wdata, word)
                await self.ctx.tick()
        self.ctx.set(self.design.host_we, 0)

    async def start(self, **chosen):
        """A start with what is chosen; returns error, busy and done after it."""
        for name, value in chosen.items():
            self.ctx.set(getattr(self.design, name), value)
        self.ctx.set(self.design.start, 1)
        await self.ctx.tick()
        self.ctx.set(self.design.start, 0)
        names = "error", "busy", "done"
        return tuple(self.ctx.get(getattr(self.design, name)) for name in names)

    async def finish(self):
        """The cycles of the run under way."""
        for _ in range(2 * self.fabric.predicted_cycles):
            if self.ctx.get(self.design.done):
                return self.ctx.get(self.design.cycles)
            await self.ctx.tick()
        raise AssertionError("the run does not end")

    async def read(self, node, flit):
        """A word that a node has received."""
        self.ctx.set(self.design.host_node, node)
        self.ctx.set(self.design.host_addr, self.fabric.layout.recv_base + flit)
        await self.ctx.tick().repeat(self.fabric.read_latency)
        return self.ctx.get(self.design.host_rdata)


def run_bench(fabric, testbench):
    """Run a testbench, which is given a `Bench`."""
    design = Assembly(fabric.netlist)

    async def drive(ctx):
        await testbench(Bench(ctx, fabric, design))

    simulated(design, drive)


def test_the_mode_decides_what_the_host_reads():
    """Of an engine in which nothing else at a node depends on the mode."""
    schedules = [tf.plan("3", name) for name in ("broadcast", "allgather")]
    assert tf.simulate(tf.Fabric(tf.compile(schedules, max_flits=2, root="any"), width=8)).passed


@pytest.mark.parametrize("lengths", [{"flits": 2}, {"max_flits": 2}])
def test_a_root_that_does_not_exist(lengths):
    """Such a start changes nothing and is reported until the next one."""
    fabric = fabric_of("2x3", "broadcast", "max-flow", lengths=lengths)
    messages = random_messages(fabric, 1)
    chosen = {"length": 2} if "max_flits" in lengths else {}
    seen = []

    async def testbench(bench):
        await bench.write(messages)
        seen.append(await bench.start(root=6, **chosen))
        seen.append(await bench.start(root=4, **chosen))
        seen.append(await bench.start(root=7))
        cycles = await bench.finish()
        seen.append(await bench.start(root=7))
        if chosen:
            assert (await bench.start(root=1, length=3))[0] == 3
        for node in range(6):
            assert [await bench.read(node, k) for k in (0, 1)] == messages[4].tolist()
        seen.append(await bench.start(root=0, **chosen))
        assert cycles == await bench.finish() == fabric.predicted_cycles
        assert await bench.read(5, 0) == messages[0][0]

    run_bench(fabric, testbench)
    assert seen == [(2, 0, 0), (0, 1, 0), (5, 1, 0), (2, 0, 1), (0, 1, 0)]


def test_where_every_number_is_a_node():
    """No root is refused, but a start while busy is."""
    fabric = fabric_of("2x2", "broadcast", "max-flow", lengths={"flits": 1})
    assert starts_seen(fabric, [{"root": 3}, {"root": 1}]) == [(0, 1, 0), (5, 1, 0)]


class DeafRootUnit(RootUnit):
    """Plant a fault: the root is taken to be node 0."""

    def value(self, name):
        return super().value(name) & 0 if name == "root" else super().value(name)


@pytest.mark.parametrize("collective", few(3, [*ROOTED], tuples=True))
def test_a_root_that_is_ignored_is_found(monkeypatch, collective):
    """A fabric that ignores its root delivers wrong words."""
    monkeypatch.setattr("torusfabric.rtl.tops.RootUnit", DeafRootUnit)
    fabric = fabric_of("2x3", collective, lengths={"flits": 1})
    assert not tf.simulate(fabric, jobs=[tf.Job(root=2)]).passed
