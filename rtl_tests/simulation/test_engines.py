"""Engines: all give the same words in the same cycles, and report missing tools."""

import re
import shutil
import signal
import threading
import time

import numpy as np
import pytest
from amaranth.hdl import Module
from amaranth.lib.wiring import In, Out
from helpers import fabric_of, few, random_messages

import torusfabric as tf
from torusfabric.errors import InputError, MissingTool, WorkFailed
from torusfabric.program import Program
from torusfabric.rtl.netlist import Leaf, NetlistBuilder
from torusfabric.simulation.engines import (
    ENGINES,
    AmaranthEngine,
    CompiledEngine,
    choose_engine,
    session,
)
from torusfabric.simulation.engines.choice import estimate_seconds
from torusfabric.simulation.engines.layout import ArenaLayout
from torusfabric.simulation.engines.model import build_model
from torusfabric.simulation.report import mean_throughput, throughput_bound
from torusfabric.simulation.simulate import simulate
from torusfabric.toolchain import cxx, processes

needs_compiler = pytest.mark.skipif(not cxx.has_compiler(), reason="no C++ compiler")


def same(one, other):
    """True if two lists of runs have the same words, cycles, edges and clocks."""
    return len(one) == len(other) and all(
        a[1:4] == b[1:4] and np.array_equal(np.array(a.words, object), np.array(b.words, object))
        for a, b in zip(one, other, strict=True)
    )


@needs_compiler
@pytest.mark.parametrize(
    ("topology", "kind", "width"),
    [("3x3", "allgather", 40), ("2x2", "alltoall", 100)],
)
def test_compiled_agrees(topology, kind, width, tmp_path):
    fabric = fabric_of(topology, kind, width=width)
    batches = [random_messages(fabric, seed) for seed in (1, 2)]
    reference = AmaranthEngine(fabric).run_many(batches)
    assert same(reference, CompiledEngine(fabric).run_many(batches))
    shown = CompiledEngine(fabric, wave=tmp_path / "fabric.vcd").run_many(batches)
    assert same(reference, shown)


@needs_compiler
@pytest.mark.parametrize("width", [1, 5, 7])
def test_parts_of_a_word_with_enables_of_one_signal(width):
    """Memories beside each other, whose write enables are successive bits, keep their words."""
    command = f"2x2 broadcast --max-flits 8 --width {width} --root any"
    fabric = tf.FabricSpec.parse(command).make().fabric
    assert simulate(fabric, engine=CompiledEngine(fabric)).passed


@needs_compiler
@pytest.mark.long
def test_large():
    fabric = fabric_of("32x32", "allgather", width=32)
    report = simulate(fabric, engine=CompiledEngine(fabric))
    assert report.passed
    assert report.words_checked == 32**4 * fabric.flits


@pytest.mark.long
@needs_compiler
def test_modules_are_built_once():
    small, large = (
        build_model(f.netlist, word=8, node_cycles=0)
        for f in (fabric_of("4x4", "allgather", "hamiltonian", width=8),
                  fabric_of("8x8", "allgather", "hamiltonian", width=8))
    )  # fmt: skip
    assert len(large.stepped.functions) <= len(small.stepped.functions) + 2


@needs_compiler
def test_a_second_build_is_a_look_up(monkeypatch):
    fabric = fabric_of("3x3", "allgather", width=8)
    first = CompiledEngine(fabric)
    monkeypatch.setattr(processes, "run", None)
    assert CompiledEngine(fabric).model.loops == first.model.loops


@needs_compiler
def test_threads_agree_with_one(monkeypatch):
    """Several threads give the results of one, for any number of instances a block."""
    fabric = fabric_of("3x3", "allgather", width=8)
    batches = [random_messages(fabric, seed) for seed in (1, 2)]
    reference = CompiledEngine(fabric, threads=1).run_many(batches)
    monkeypatch.setattr(session, "MIN_WORDS_FOR_THREADS", 0)
    for block in (1, 4):
        monkeypatch.setattr(session, "INSTANCES_PER_BLOCK", block)
        engine = CompiledEngine(fabric, threads=3)
        assert same(reference, engine.run_many(batches))


@needs_compiler
def test_much_work_is_worth_a_longer_build():
    """A model for many runs is compiled with more optimization, and gives the same results."""
    fabric = fabric_of("3x3", "allreduce", width=8)
    batches = [random_messages(fabric, seed) for seed in (1, 2)]
    quick, slow = (CompiledEngine(fabric, repeat=repeat) for repeat in (1, 10**9))
    assert quick.model.loops != slow.model.loops
    assert same(quick.run_many(batches), slow.run_many(batches))


@needs_compiler
def test_fabric_that_does_not_end(monkeypatch):
    fabric = fabric_of("3x3", "allgather", width=8)
    messages = random_messages(fabric, 1)
    engine = CompiledEngine(fabric)
    monkeypatch.setattr(Program, "cycles", lambda program, length=None, mode=None: -14)
    with pytest.raises(WorkFailed, match=r"^The fabric was busy 2 clock edges .* after -14$"):
        engine.run(messages)


@needs_compiler
def test_progress_ends_at_all_words():
    fabric, seen = fabric_of("3x3", "allgather", width=8), []
    messages = random_messages(fabric, 1)
    engine = CompiledEngine(fabric)
    engine.run_many([messages] * 2, progress=lambda done, total: seen.append((done, total)))
    totals = {total for _, total in seen}
    assert totals == {2 * fabric.nodes * (fabric.layout.send_words + fabric.layout.recv_words)}
    assert all(0 <= done <= total for done, total in seen)


@needs_compiler
@pytest.mark.parametrize("engine", [AmaranthEngine, CompiledEngine])
@pytest.mark.parametrize("top", ["core", "stream"])
def test_runs_need_a_host_port(top, engine):
    fabric = tf.Fabric(tf.compile(tf.plan("2", "allgather")), width=8, top=top)
    with pytest.raises(InputError, match=rf"^Top must be host for runs by a host port, not {top}$"):
        engine(fabric).run(random_messages(fabric, 1))


@pytest.mark.parametrize("shape", [(2, 2), (2, 4), (1, 3), (3, 3)])
def test_messages_are_those_of_all_nodes(shape):
    fabric = fabric_of("2", "allgather", flits=3)
    message = rf"^Messages must be of shape \(2, 3\), not {re.escape(str(shape))}$"
    with pytest.raises(InputError, match=message):
        AmaranthEngine(fabric).run(np.zeros(shape, int))


def test_waves_need_a_folder(tmp_path):
    fabric = fabric_of("3x3", "allgather", width=8)
    with pytest.raises(InputError, match=r"^File of waves must end in \.vcd or"):
        choose_engine(fabric, wave="a.ghw")
    if cxx.has_compiler():
        engine = CompiledEngine(fabric, wave=tmp_path / "nowhere" / "a.vcd")
        with pytest.raises(InputError, match=r"^File .*nowhere.* of waves cannot be written"):
            engine.run(random_messages(fabric, 1))


def test_auto_goes_by_size(monkeypatch):
    small, large = (fabric_of(name, "allgather", width=32) for name in ("3x3", "20x20"))
    assert estimate_seconds(small)[0] < estimate_seconds(small)[1]
    assert estimate_seconds(large)[0] > estimate_seconds(large)[1]
    chosen = choose_engine(small)
    assert isinstance(chosen.engine, AmaranthEngine)
    assert chosen.reason == "small enough that nothing need be built"
    monkeypatch.setitem(ENGINES, "compiled", lambda *_, **__: "compiled")
    monkeypatch.setattr(cxx, "has_compiler", lambda: True)
    assert choose_engine(large).engine == "compiled"
    assert choose_engine(large).reason.startswith("Amaranth's simulator would take some ")
    monkeypatch.setattr(cxx, "has_compiler", lambda: False)
    assert isinstance(choose_engine(large).engine, AmaranthEngine)
    assert "no C++ compiler" in choose_engine(large).reason


def test_names():
    fabric = fabric_of("3x3", "allgather", width=32)
    assert isinstance(choose_engine(fabric, "amaranth").engine, AmaranthEngine)
    with pytest.raises(InputError, match=r"^Engine must be one of auto, amaranth, compiled, not "):
        choose_engine(fabric, "numpy")
    assert list(ENGINES) == ["amaranth", "compiled"]


def test_compilers_are_looked_for_in_turn(monkeypatch):
    monkeypatch.delenv("CXX", raising=False)
    there = {"clang++": "/somewhere/clang++"}
    monkeypatch.setattr(shutil, "which", lambda name, **_: there.get(name))
    assert cxx.compiler_command() == ["/somewhere/clang++"]
    there.clear()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingTool, match=r"^C\+\+ compiler was not found: install g\+\+ "):
        cxx.compiler_command()
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(MissingTool, match=r"as 'no-such-compiler' \(set by CXX\)"):
        cxx.compiler_command()


class Inverter(Leaf):
    """The inverse of the input, directly or one cycle later."""

    def __init__(self, registered):
        super().__init__({"a": In(1), "y": Out(1)})
        self._registered = registered

    def elaborate(self, platform):
        m = Module()
        m.d["sync" if self._registered else "comb"] += self.y.eq(~self.input_value("a"))
        return m


def ring_of_inverters(registered):
    """Two instances that read from each other."""
    netlist = NetlistBuilder()
    netlist.nets = {"p": 1, "q": 1}
    netlist.add_module("pass", lambda: Inverter(registered))
    netlist.add_instance(
        "one", "pass", inputs={"a": netlist.all_bits("q")}, outputs={"y": ("p", 1)}
    )
    netlist.add_instance(
        "two", "pass", inputs={"a": netlist.all_bits("p")}, outputs={"y": ("q", 1)}
    )
    return netlist.make_netlist()


@needs_compiler
def test_circles_without_a_register_are_refused():
    with pytest.raises(WorkFailed, match=r"^Instance one must not depend on itself without"):
        build_model(ring_of_inverters(registered=False), word=1, node_cycles=0)
    model = build_model(ring_of_inverters(registered=True), word=1, node_cycles=0)
    # Both begin with the same value, and so stay equal.
    assert [loop.count for loop in model.stepped.loops] == [1]


@needs_compiler
def test_instances_taken_for_alike_are_found(monkeypatch):
    """Instances with different states that are treated as equal give wrong words."""
    fabric = fabric_of("3x3", "allgather", "matching", width=8)
    assert simulate(fabric, engine="compiled").passed
    monkeypatch.setattr(ArenaLayout, "reads_with_drivers", lambda self, number: ())
    assert not simulate(fabric, engine="compiled").passed


def test_repeat_uses_fresh_data():
    fabric = fabric_of("3x3", "allgather", width=8)
    report = simulate(fabric, repeat=3)
    assert report.passed
    assert report.repeat == 3
    assert report.words_checked == 3 * 81 * fabric.flits
    assert report.throughput == pytest.approx(8 * fabric.flits / fabric.predicted_cycles, abs=1e-4)
    # Eight messages arrive by four ports.
    assert report.throughput <= report.throughput_bound == 4


@pytest.mark.parametrize(
    "collective", few(2, ["scatter", "allgather", "reduce", "allreduce"], tuples=True)
)
def test_throughput_of_jobs_counts_their_lengths(collective):
    """Short runs of a fabric for long messages have a lower throughput."""
    fabric = tf.Fabric(tf.compile(tf.plan("2x3", collective), max_flits=12), width=8)
    single, many = (tf.simulate(fabric, jobs=[tf.Job(length=4)] * n) for n in (1, 3))
    whole = tf.simulate(fabric, jobs=[tf.Job(length=12)])
    assert single.throughput == pytest.approx(many.throughput)
    assert single.throughput < whole.throughput <= whole.throughput_bound
    per_flit = whole.throughput * whole.cycles / 12
    assert single.throughput == pytest.approx(per_flit * 4 / single.cycles, rel=2e-3)


@pytest.mark.parametrize(
    "selection",
    few(
        4,
        [
            "broadcast",
            "scatter",
            "reduce",
            "allreduce",
            "halo",
            "alltoall",
            "allgather:hamiltonian",
            "broadcast:diagonal",
        ],
        tuples=True,
    ),
)
def test_throughput_stays_below_its_bound(selection):
    """Throughput stays below its bound, also for messages that are cut within a step."""
    fabric = fabric_of("4x4", *selection.split(":"), flits=64)
    found, most = mean_throughput(fabric, fabric.predicted_cycles, 64), throughput_bound(fabric)
    assert 0.1 * most < found <= most


@pytest.fixture
def interruptible():
    """Enable interrupts, also where the tests run in the background of a shell."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@needs_compiler
@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_ends_runs_between_two_edges():
    """An interrupt ends a simulation between two edges, not after all its runs."""
    fabric = fabric_of("8x8", "allgather", flits=5000)
    engine, words = CompiledEngine(fabric, threads=1), random_messages(fabric, 1)
    timer = threading.Timer(1.0, signal.pthread_kill, (threading.get_ident(), signal.SIGINT))
    began = time.monotonic()
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        engine.run_many([words] * 200)
    assert time.monotonic() - began < 20
