"""The tester: fills all send memories, runs the fabric, and compares every word received."""

from typing import TYPE_CHECKING, Any

from amaranth.hdl import Const, Module, Signal, Value
from amaranth.lib import enum, wiring
from amaranth.lib.wiring import In, Out

from ...collective import ADD
from ...errors import InputError
from .expected import ExpectedWord
from .forecast import Forecast
from .job_draw import JobDraw
from .jobs import choices_of
from .of_mode import chosen
from .walk import Walk
from .words import SentWords

if TYPE_CHECKING:
    from ...rtl.fabric import Fabric

__all__ = ["PATIENCE", "Result", "Tester", "host_port", "sent_words"]

#: Cycles after the predicted end before a run is given up.
PATIENCE = 16

#: Bits of the number of a run before those that tell groups apart.
RUN_BITS = 8


class Result(enum.Enum, shape=2):  # type: ignore[call-arg]
    """The result of a run."""

    PASS = 0
    WRONG = 1  #: a word is not what it should be
    LATE = 2  #: the fabric was not done when predicted


def host_port(fabric: "Fabric") -> wiring.Signature:
    """The signature of what drives a fabric through its host port."""
    inputs, outputs = fabric.netlist.inputs, fabric.netlist.outputs
    return wiring.Signature(
        {name: Out(width) for name, width in inputs.items()}
        | {name: In(width) for name, width in outputs.items()}
    )


def sent_words(fabric: "Fabric") -> list[list[SentWords]]:
    """The words that the nodes of a group send in a test: for each mode, with each operator."""
    program = fabric.program
    operators = program.operators or (ADD,)
    for operator in operators:
        if operator.latency or not operator.associative:
            raise InputError(
                "Operator of a self-test must be associative and without registers, for it is "
                f"built into the tester as well, not {operator}"
            )
    return [
        [
            SentWords(mode.schedule.collective, mode.groups.size, fabric.width, operator)
            for operator in operators
        ]
        for mode in program.modes
    ]


class Tester(wiring.Component):
    """Tests a fabric once, through its host port, in a run that chooses what `drawn_job` says.

    Parameters
    ----------
    fabric : Fabric
        With a host port.

    Members
    -------
    start : In(1)
    run : In(16)
        The number of the run; job and words depend on it.
    busy : Out(1)
    result : Out(Result)
        Of the last test.
    mode, length, root, operation : Out
        The job of the last test, as far as the fabric leaves a choice.
    predicted : Out
        The cycles that it must take.
    node, address, expected, got : Out
        Where the result is `Result.WRONG`, the first wrong word, and where it lies; the address is
        that of the host port.
    host : Out(host port)
        Must be connected to the fabric while busy.
    """

    def __init__(self, fabric: "Fabric") -> None:
        self._sent = sent_words(fabric)
        self._fabric, self._choices = fabric, choices_of(fabric)
        self._forecast = Forecast(fabric)
        inputs = fabric.netlist.inputs
        super().__init__(
            {
                "start": In(1),
                "run": In(16),
                "busy": Out(1),
                "result": Out(Result),
                **{name: Out(inputs[name]) for name in self._choices},
                "predicted": Out(range(self._forecast.most + 1)),
                "node": Out(inputs["host_node"]),
                "address": Out(inputs["host_addr"]),
                "expected": Out(fabric.width),
                "got": Out(fabric.width),
                "host": Out(host_port(fabric)),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Build the state machine of a test."""
        m = Module()
        m.submodules.word = self._word = ExpectedWord(self._sent)
        m.submodules.walk = self._walk = Walk(self._fabric)
        self._checking = Signal(name="checking")
        self._connect(m)
        with m.FSM() as states:
            m.d.comb += self.busy.eq(~states.ongoing("IDLE"))
            with m.State("IDLE"), m.If(self.start):
                m.d.sync += self._checking.eq(0)
                m.next = "DRAW" if self._choices else "FILL"
            if self._choices:
                self._draw(m)
            with m.State("FILL"):
                m.d.comb += self._walk.begin.eq(1)
                m.next = "WORD"
            self._compare_words(m)
            self._run(m)
        return m

    def _connect(self, m: Module) -> None:
        """Connect what knows the job, the way through the words, and the words themselves."""
        m.submodules.forecast = forecast = self._forecast
        walk, word, host = self._walk, self._word, self.host
        for name in self._choices:
            m.d.comb += getattr(host, name).eq(getattr(self, name))
        mode, operation = (getattr(self, name, Const(0)) for name in ("mode", "operation"))
        length = getattr(self, "length", Const(self._fabric.flits))
        root = self._root(mode)
        m.d.comb += [
            forecast.mode.eq(mode),
            forecast.length.eq(length),
            self.predicted.eq(forecast.cycles),
            walk.mode.eq(mode),
            walk.length.eq(length),
            walk.root.eq(root),
            walk.received.eq(self._checking),
            word.mode.eq(mode),
            word.root.eq(root),
            word.operation.eq(operation),
            # Other runs in other groups: words that cross to another group are found.
            word.run.eq(self.run ^ (walk.group << RUN_BITS)[:16]),
            word.node.eq(walk.position),
            word.peer.eq(walk.peer),
            word.flit.eq(walk.flit),
            word.received.eq(self._checking),
            self.node.eq(walk.node),
            self.address.eq(walk.address),
            self.expected.eq(word.word),
            host.host_node.eq(walk.node),
            host.host_addr.eq(walk.address),
            host.host_wdata.eq(word.word),
        ]

    def _root(self, mode: Value) -> Value:
        """The root of the run: the one that it chooses, or that of the mode."""
        modes = self._fabric.program.modes
        fixed = [Const(each.schedule.collective.root or 0, 16) for each in modes]
        roots = [
            self.root if each.any_root else root for each, root in zip(modes, fixed, strict=True)
        ]
        return chosen(roots, mode)

    def _draw(self, m: Module) -> None:
        """Draw what the run chooses."""
        m.submodules.draw = draw = JobDraw(self._choices)
        m.d.comb += draw.run.eq(self.run)
        m.d.comb += [getattr(self, name).eq(getattr(draw, name)) for name in self._choices]
        with m.State("DRAW"):
            m.d.comb += draw.start.eq(1)
            m.next = "DRAWN"
        with m.State("DRAWN"), m.If(~draw.busy):
            m.next = "FILL"

    def _compare_words(self, m: Module) -> None:
        """Compute one word after another; write those to send, compare those received."""
        host, walk, word = self.host, self._walk, self._word
        # The word is computed while the one to compare is read.
        read = self._fabric.read_latency + 1
        count = Signal(range(read + 1), name="count")
        with m.State("WORD"):
            m.d.comb += word.start.eq(count == 0)
            m.d.sync += self.got.eq(host.host_rdata)
            with m.If(count != read):
                m.d.sync += count.eq(count + 1)
            with m.Elif(~word.busy):
                m.d.sync += count.eq(0)
                m.next = "COMPARE"
        with m.State("COMPARE"):
            m.d.comb += [walk.step.eq(1), host.host_we.eq(~self._checking)]
            m.next = "WORD"
            with m.If(self._checking & walk.receives & (self.got != word.word)):
                m.d.comb += walk.step.eq(0)
                m.d.sync += self.result.eq(Result.WRONG)
                m.next = "IDLE"
            with m.Elif(walk.last & self._checking):
                m.d.sync += self.result.eq(Result.PASS)
                m.next = "IDLE"
            with m.Elif(walk.last):
                m.next = "START"

    def _run(self, m: Module) -> None:
        """Start the fabric, and look when it is done."""
        host, most = self.host, self._forecast.most + PATIENCE
        waited = Signal(range(most + 1), name="waited")
        with m.State("START"):
            m.d.comb += host.start.eq(1)
            m.d.sync += [waited.eq(0), self._checking.eq(1)]
            m.next = "WAIT"
        with m.State("WAIT"):
            m.d.comb += self._walk.begin.eq(1)
            m.d.sync += waited.eq(waited + 1)
            with m.If(host.done | (waited == most)):
                # The upper bits cannot be set so soon, and would cost as much.
                counted = host.cycles[: len(waited)] == self.predicted
                on_time = (waited == self.predicted) & counted
                m.d.sync += self.result.eq(Result.LATE)
                m.next = "IDLE"
                with m.If(host.done & on_time):
                    m.next = "WORD"
