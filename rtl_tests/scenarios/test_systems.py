"""The harness of the example applications: elements and a fabric in one netlist."""

import re
import sys

import numpy as np
import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib.memory import Memory
from applications import ROOT
from pages import blocks_of
from session import BlockError, run_blocks
from support.job import run_job
from support.system import Element, System

import torusfabric as tf

#: Words that each element sends.
WORDS = 3


class Summer(Element):
    """Element that sends its words to all elements, and adds up all that it receives."""

    #: A fault that a test plants: a word that is added to each sum.
    fault = 0

    def elaborate(self, platform):
        m = Module()
        m.submodules.words = words = Memory(shape=16, depth=4, init=[])
        reads, writes = words.read_port(), words.write_port()
        at, total = Signal(2), Signal(16)
        left = Signal(range(10))
        m.d.comb += [self.read_data.eq(reads.data), reads.addr.eq(self.address),
                     writes.addr.eq(self.address), writes.data.eq(self.write_data),
                     writes.en.eq(self.write)]  # fmt: skip
        with m.FSM():
            with m.State("REST"), m.If(self.start):
                m.d.sync += [self.done.eq(0), at.eq(0), total.eq(self.fault), left.eq(8)]
                m.next = "READ"
            with m.State("READ"):
                m.d.comb += reads.addr.eq(at)
                m.next = "SEND"
            with m.State("SEND"):
                m.d.comb += [reads.addr.eq(at), self.send.valid.eq(1),
                             self.send.payload.data.eq(reads.data),
                             self.send.payload.last.eq(at == WORDS - 1)]  # fmt: skip
                with m.If(self.send.ready):
                    m.d.sync += at.eq(at + 1)
                    m.next = "READ"
                    with m.If(self.send.payload.last):
                        m.next = "ADD"
            with m.State("ADD"):
                m.d.comb += self.receive.ready.eq(1)
                with m.If(self.receive.valid):
                    m.d.sync += total.eq(total + self.receive.payload.data)
                    with m.If(self.receive.payload.last):
                        m.d.sync += left.eq(left - 1)
                        with m.If(left == 0):
                            m.next = "WRITE"
            with m.State("WRITE"):
                m.d.comb += [writes.en.eq(1), writes.addr.eq(0), writes.data.eq(total)]
                m.d.sync += self.done.eq(1)
                m.next = "REST"
        return m


def system(element=Summer, **options):
    """Return a system of nine elements with an all-gather."""
    plans = [tf.plan("3x3", "allgather"), tf.plan("3x3", "broadcast")]
    program = tf.compile(plans, max_flits=WORDS)
    return System(program, element, width=16, memory=(2, 16), **{"modes": [0]} | options)


@pytest.mark.parametrize("engine", ["compiled", "amaranth"])
def test_a_job_ends_with_the_right_words(engine):
    """Every element has the sum of all words, and runs take the forecast cycles."""
    built, sent = system(), np.arange(27).reshape(9, WORDS) * 5
    report = run_job(built, sent, read=1, engine=engine)
    assert (report.words == sent.sum()).all()
    assert report.runs == [built.program.cycles(WORDS, mode=0)]
    assert report.cycles > report.runs[0]


def test_both_simulators_agree():
    """The compiled model takes as many cycles as Amaranth's simulator."""
    sent = np.ones((9, WORDS), int)
    reports = [run_job(system(), sent, read=1, engine=name) for name in ("compiled", "amaranth")]
    assert reports[0].cycles == reports[1].cycles


def test_a_wrong_element_is_found():
    """A fault in the elements changes the words."""

    class Wrong(Summer):
        fault = 1

    sent = np.ones((9, WORDS), int)
    assert (run_job(system(Wrong), sent, read=1).words == 28).all()


def test_a_job_that_never_ends_is_given_up(monkeypatch):
    """Elements that wait for more runs than the conductor commands are reported."""
    monkeypatch.setattr("support.job.PATIENCE", 2000)
    with pytest.raises(tf.WorkFailed, match="must end their job within 2000 cycles"):
        run_job(system(modes=[1]), np.ones((9, WORDS), int), read=1)


def test_a_refused_run_is_reported():
    """A command of a mode that does not exist fails the job, though other runs are right."""
    with pytest.raises(tf.WorkFailed, match="has refused a run"):
        run_job(system(modes=[0, 2]), np.ones((9, WORDS), int), read=1)


def test_a_system_is_emitted_as_verilog():
    """The Verilog has the elements, the conductor and the fabric."""
    text = tf.emit(system()).text
    assert "module element (" in text
    assert "module conductor (" in text
    assert "router_0" in text


@pytest.fixture
def page_blocks(tmp_path, monkeypatch):
    """The blocks of the tutorial, which run in a folder of their own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    # Python would import the element of the folder of an earlier test.
    monkeypatch.delitem(sys.modules, "dot_product", raising=False)
    monkeypatch.delitem(sys.path_importer_cache, ".", raising=False)
    page = ROOT / "docs" / "tutorials" / "own-accelerator.md"
    return [block.as_json() for block in blocks_of(page.read_text(encoding="utf-8"))]


def test_the_accelerator_of_the_tutorial(page_blocks):
    """All code of the tutorial runs, from the element to its size."""
    printed = "".join(said for block in run_blocks(page_blocks) for _, said in block)
    cycles, forecast = (int(re.search(rf"{word} (\d+)", printed)[1])
                        for word in ("after", "forecast:"))  # fmt: skip
    assert cycles == forecast
    assert "multipliers: 4 " in printed


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("at != WORDS)", "at != WORDS - 1)"),
        ("total + product", "total | product"),
        ("write.addr.eq(self.address[:4])", "write.addr.eq(self.address[1:])"),
        ("self.done.eq(1)", "self.done.eq(0)"),
    ],
)
def test_mistakes_in_the_tutorial_are_found(page_blocks, monkeypatch, right, wrong):
    """The comparison finds a mistake in the element, or the job never ends."""
    monkeypatch.setattr("support.job.PATIENCE", 2000)
    element = page_blocks[0]
    assert right in element["text"]
    element["text"] = element["text"].replace(right, wrong)
    with pytest.raises(BlockError, match=r"AssertionError|must end their job"):
        run_blocks(page_blocks[:3])
