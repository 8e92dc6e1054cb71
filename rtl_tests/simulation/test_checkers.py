"""Comparisons of simulations: each planted difference is noticed."""

from dataclasses import replace
from operator import and_, xor

import numpy as np
import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib.wiring import In
from helpers import fabric_of

import torusfabric as tf
from torusfabric.adapters.host.drive import HostPortDriver
from torusfabric.adapters.streams.drive.beats import STATUS_SINK, Beat, Sink, StreamLog
from torusfabric.adapters.streams.drive.comparison import StreamComparison
from torusfabric.adapters.streams.drive.messages import RunPackets
from torusfabric.adapters.streams.drive.simulate import simulate_streams
from torusfabric.adapters.streams.drive.traffic import StreamTraffic
from torusfabric.adapters.streams.ports import STATUS_WORDS
from torusfabric.adapters.streams.unloader import Unloader
from torusfabric.errors import WorkFailed
from torusfabric.simulation.engines import AmaranthEngine, CompiledEngine, Engine
from torusfabric.toolchain import cxx

needs_compiler = pytest.mark.skipif(not cxx.has_compiler(), reason="no C++ compiler")


class Replays(Engine):
    """An engine that returns another engine's results with a change in the last run."""

    name = "replays"

    def __init__(self, fabric, change):
        super().__init__(fabric)
        self._change = change

    def run_all(self, batches, jobs, progress):
        runs = AmaranthEngine(self.fabric).run_many(batches, jobs=jobs)
        return [*runs[:-1], self._change(runs[-1])]

    def run_traffic(self, traffic, progress):
        log = AmaranthEngine(self.fabric).run_traffic(traffic)
        self._change(log)
        return log


@pytest.mark.parametrize("width", [8, 40, 100])
def test_every_bit_of_a_word_is_compared(width):
    fabric = fabric_of("2", "allgather", width=width)
    for bit in (0, width // 2, width - 1):

        def flip(run, bit=bit):
            words = np.array(run.words, object)
            words[-1, -1] ^= 1 << bit
            return run._replace(words=words)

        report = tf.simulate(fabric, engine=Replays(fabric, flip))
        assert (report.words_wrong, report.passed) == (1, False)
        assert report.first_wrong.node == 1
        assert report.first_wrong.expected ^ report.first_wrong.got == 1 << bit


def test_cycles_are_compared_as_counted_inside_and_outside():
    fabric = fabric_of("2", "allgather", width=8)
    predicted = fabric.predicted_cycles
    for cycles, edges in ((1, 1), (1, 0), (0, 1)):

        def change(run, cycles=cycles, edges=edges):
            return run._replace(cycles=run.cycles + cycles, edges=run.edges + edges)

        report = tf.simulate(fabric, engine=Replays(fabric, change))
        assert report.cycles == (predicted + 1 if cycles == edges else -1)
        assert not report.passed


@pytest.mark.parametrize("counted", ["cycles", "edges"])
def test_cycles_of_a_job_are_compared_as_counted_inside_and_outside(counted):
    fabric = tf.Fabric(tf.compile(tf.plan("2", "allgather"), max_flits=2), width=8)

    def change(run):
        return run._replace(**{counted: getattr(run, counted) + 1})

    report = tf.simulate(fabric, jobs=[tf.Job(length=1)] * 2, engine=Replays(fabric, change))
    assert [job.cycles for job in report.jobs] == [report.jobs[0].predicted_cycles, -1]
    assert not report.passed


def test_cycles_of_each_job_are_compared():
    """Cycles are compared for each job, even if the total is as predicted."""
    fabric = tf.Fabric(tf.compile(tf.plan("2", "allgather"), max_flits=2), width=8)
    report = tf.simulate(fabric)
    first, second, *others = report.jobs
    swapped = (
        replace(first, cycles=first.cycles + 1),
        replace(second, cycles=second.cycles - 1),
        *others,
    )
    assert report.passed
    assert not replace(report, jobs=swapped).passed


def test_what_the_port_does_not_write_is_wrong(monkeypatch):
    """Words that the sample must write through the port are not written directly into memories."""

    def nothing(port, which, words):
        yield from ()

    monkeypatch.setattr(HostPortDriver, "write", nothing)
    fabric = fabric_of("3x3", "alltoall", width=8, flits=16)
    report = tf.simulate(fabric)
    assert report.direct_words
    assert report.words_wrong > 900


#: Changes of the words that arrive at the last node.
CHANGES = {
    "a word": lambda beats: [beats[0]._replace(word=beats[0].word ^ 0x80), *beats[1:]],
    "its end": lambda beats: [beats[0]._replace(last=True), *beats[1:]],
    "an origin": lambda beats: [*beats[:-1], beats[-1]._replace(number=0)],
    "one too many": lambda beats: [*beats, beats[-1]],
    "one too few": lambda beats: beats[:-1],
}


@pytest.mark.parametrize("what", CHANGES)
def test_every_part_of_a_beat_is_compared(what):
    program = tf.compile(tf.plan("2", "allgather"), flits=2)
    fabric = tf.Fabric(program, width=8, top="stream", beat=1)

    def change(log):
        log.arrivals["m_axis_1"] = CHANGES[what](log.arrivals["m_axis_1"])

    report = simulate_streams(fabric, jobs=[tf.Job()], engine=Replays(fabric, change))
    assert (report.words_wrong, report.passed) == (1, False)
    assert "node 1 " in report.first_wrong


def test_cycles_of_streams_are_compared():
    fabric = tf.Fabric(tf.compile(tf.plan("2", "allgather")), width=8, top="stream")

    def change(log):
        log.runs[-1] = log.runs[-1][0], log.runs[-1][1] + 1

    report = tf.simulate(fabric, jobs=[tf.Job()] * 2, engine=Replays(fabric, change))
    assert report.words_wrong == 0
    assert not report.passed


@pytest.mark.parametrize("part", range(len(STATUS_WORDS)))
def test_every_part_of_a_status_is_compared(part):
    """Each word of the status of the last run is compared."""
    plans = [tf.plan("2", name) for name in ("allgather", "allreduce")]
    fabric = tf.Fabric(tf.compile(plans, max_flits=2), width=8, top="stream", beat=1)

    def change(log):
        statuses = log.arrivals[STATUS_SINK]
        at = len(statuses) - len(STATUS_WORDS) + part
        statuses[at] = statuses[at]._replace(word=statuses[at].word + 1)

    jobs = [tf.Job(mode=mode, length=1) for mode in (0, 1)]
    report = tf.simulate(fabric, jobs=jobs, engine=Replays(fabric, change))
    assert (report.words_wrong, report.passed) == (1, False)
    assert report.first_wrong.startswith("status of run 1 is [")


@pytest.mark.parametrize("shown", [[], [6], [6, 0, 7], [6, 0, 6, 0], [0, 6, 0]])
def test_errors_that_are_shown_are_compared(shown):
    compared = StreamComparison([RunPackets([], [])], StreamLog())
    compared.compare_errors(StreamLog(errors=shown), [0, 6, 6, 0, 6])
    (found,) = compared.run_comparisons
    assert found.words_wrong == 1
    assert found.first_wrong.startswith("error ")


def test_errors_that_a_fabric_shows_are_compared():
    """Errors on the output of a fabric without statuses are compared."""
    fabric = tf.Fabric(tf.compile(tf.plan("2", "allgather"), flits=2), width=8, top="stream")
    jobs = [tf.Job()] * 6
    engine = Replays(fabric, lambda log: log.errors.pop())
    assert simulate_streams(fabric, jobs=jobs, faults=0.5).dropped
    report = simulate_streams(fabric, jobs=jobs, faults=0.5, engine=engine)
    assert (report.words_wrong, report.passed) == (1, False)
    assert report.first_wrong.startswith("error ")


def test_what_is_not_taken_or_not_given_is_an_error():
    traffic = StreamTraffic([], [Sink("m_axis_0", 2, stall=0)], seed=1, patience=1)
    beat = Beat(5, last=False, number=0, cycle=3)
    traffic.check_complete(StreamLog({"m_axis_0": [beat] * 2}), 0)
    for unsent, missing in ((1, 0), (0, 1), (2, 2)):
        log = StreamLog({"m_axis_0": [beat] * (2 - missing)}, clocks=9)
        with pytest.raises(WorkFailed) as found:
            traffic.check_complete(log, unsent)
        assert str(found.value).endswith(
            f"rests with {unsent} words not taken and {missing} words not given"
        )


class Restless(Unloader):
    """An unloader with one output changed by a signal that is high in every second cycle."""

    changed, change = "tvalid", and_

    def elaborate(self, platform):
        m = Module()
        m.submodules.inner = inner = Unloader(self.shape)
        even = Signal()
        m.d.sync += even.eq(~even)
        for name, member in inner.signature.members.items():
            if member.flow is In:
                # While `tvalid` is low, the unloader must not see its word accepted.
                waits = (name, self.changed) == ("tready", "tvalid")
                inner.bind_input(
                    name, [self.input_value(name) & even if waits else self.input_value(name)]
                )
            else:
                shown = getattr(inner, name)
                changed = type(self).change(shown, even) if name == self.changed else shown
                m.d.comb += getattr(self, name).eq(changed)
        return m


@needs_compiler
@pytest.mark.parametrize("engine", [AmaranthEngine, CompiledEngine])
@pytest.mark.parametrize(
    ("changed", "change"), [("tvalid", and_), ("tvalid", xor), ("tlast", xor), ("tid", xor)]
)
def test_a_word_that_does_not_wait_is_found(engine, changed, change):
    program = tf.compile(tf.plan("2", "allgather"), flits=2)
    fabric = tf.Fabric(program, width=8, top="stream", beat=1)
    made = type("Changing", (Restless,), {"changed": changed, "change": change})
    (shape,) = fabric.netlist.modules["unloader"].args
    fabric.netlist.modules["unloader"] = lambda: made(shape)
    with pytest.raises(WorkFailed, match=r"The word at m_axis_\d changed while it waited"):
        tf.simulate(fabric, stall=0.5, engine=engine(fabric))
