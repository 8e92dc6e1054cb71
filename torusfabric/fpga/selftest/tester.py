"""The tester: fills all send memories, runs the fabric, and compares every word received."""

from typing import TYPE_CHECKING, Any

from amaranth.hdl import Const, Module, Mux, Signal, Value
from amaranth.lib import enum, wiring
from amaranth.lib.wiring import In, Out

from ...collective import Operator
from ...rtl.memories import choose
from .expected import ExpectedWord
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


def sent_words(fabric: "Fabric") -> SentWords:
    """The words that the nodes of a group of a fabric send in a test."""
    program = fabric.program
    operator = program.mode.operator_of() or Operator()
    collective, nodes = program.schedule.collective, program.groups.size
    return SentWords(collective, nodes, fabric.width, operator)


class Tester(wiring.Component):
    """Tests a fabric once, through its host port.

    Parameters
    ----------
    fabric : Fabric
        With a host port.

    Members
    -------
    start : In(1)
    run : In(16)
        The number of the run; the words depend on it.
    busy : Out(1)
    result : Out(Result)
        Of the last test.
    node, address, expected, got : Out
        Where the result is `Result.WRONG`, the first wrong word, and where it lies; the address is
        that of the host port.
    host : Out(host port)
        Must be connected to the fabric while busy.
    """

    def __init__(self, fabric: "Fabric") -> None:
        self._fabric = fabric
        inputs = fabric.netlist.inputs
        super().__init__(
            {
                "start": In(1),
                "run": In(16),
                "busy": Out(1),
                "result": Out(Result),
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
        fabric, host, predicted = self._fabric, self.host, self._fabric.predicted_cycles
        m.submodules.word = word = ExpectedWord(sent_words(fabric))
        # The word is computed while the one to compare is read.
        read = fabric.read_latency + 1
        count, waited = Signal(range(read + 1)), Signal(range(predicted + PATIENCE + 1))
        checking, fill, check, step = Signal(), Signal(), Signal(), Signal()
        last = self._count(m, checking, fill, check, step)
        position, run, receives = self._in_group()
        m.d.comb += [
            word.run.eq(run),
            word.node.eq(position),
            word.peer.eq(self._peer),
            word.flit.eq(self._flit),
            word.received.eq(checking),
            host.host_node.eq(self.node),
            host.host_addr.eq(self.address),
            host.host_wdata.eq(word.word),
            self.expected.eq(word.word),
        ]
        with m.FSM() as states:
            m.d.comb += self.busy.eq(~states.ongoing("IDLE"))
            with m.State("IDLE"), m.If(self.start):
                m.d.comb += fill.eq(1)
                m.d.sync += checking.eq(0)
                m.next = "WORD"
            with m.State("WORD"):
                m.d.comb += word.start.eq(count == 0)
                m.d.sync += self.got.eq(host.host_rdata)
                with m.If(count != read):
                    m.d.sync += count.eq(count + 1)
                with m.Elif(~word.busy):
                    m.d.sync += count.eq(0)
                    m.next = "COMPARE"
            with m.State("COMPARE"):
                m.d.comb += [step.eq(1), host.host_we.eq(~checking)]
                m.next = "WORD"
                with m.If(checking & receives & (self.got != word.word)):
                    m.d.comb += step.eq(0)
                    m.d.sync += self.result.eq(Result.WRONG)
                    m.next = "IDLE"
                with m.Elif(last & checking):
                    m.d.sync += self.result.eq(Result.PASS)
                    m.next = "IDLE"
                with m.Elif(last):
                    m.next = "START"
            with m.State("START"):
                m.d.comb += host.start.eq(1)
                m.d.sync += [waited.eq(0), checking.eq(1)]
                m.next = "WAIT"
            with m.State("WAIT"):
                m.d.comb += check.eq(1)
                m.d.sync += waited.eq(waited + 1)
                with m.If(host.done | (waited == predicted + PATIENCE)):
                    # The upper bits cannot be set so soon, and would cost as much.
                    counted = host.cycles[: len(waited)] == predicted
                    on_time = (waited == predicted) & counted
                    m.d.sync += self.result.eq(Result.LATE)
                    m.next = "IDLE"
                    with m.If(host.done & on_time):
                        m.next = "WORD"
        return m

    def _in_group(self) -> tuple[Value, Value, Value]:
        """Position of the node in its group, the number of the run there, and whether it receives.

        The numbers differ from group to group, so that words that cross to another are found.
        """
        groups, collective = self._fabric.program.groups, self._fabric.program.schedule.collective
        if groups.count == 1:
            return self.node, self.run, Const(1)
        position, group = (
            choose([Const(int(value), 16) for value in values], self.node)
            for values in (groups.position, groups.group)
        )
        receives = position == collective.root if collective.to_root else Const(1)
        return position, self.run ^ (group << RUN_BITS)[:16], receives

    def _count(self, m: Module, checking: Signal, fill: Signal, check: Signal, step: Signal) -> Any:
        """Count through the words of all nodes; returns what is high at the last one."""
        layout, collective = self._fabric.layout, self._fabric.program.blocks.collective
        flits, nodes = self._fabric.flits, self._fabric.nodes
        self._peer, self._flit = Signal(range(max(nodes, 2))), Signal(range(max(flits, 2)))
        # A node sends, or has received, a message for, or of, each of so many nodes.
        sent, received = layout.send_words // flits, layout.recv_words // flits
        alone = collective.to_root and collective.axes is None
        first, last = (collective.root,) * 2 if alone else (0, nodes - 1)
        flit_ends = self._flit == flits - 1
        peer_ends = self._peer == Mux(checking, received - 1, sent - 1)
        node_ends = self.node == Mux(checking, last, nodes - 1)
        with m.If(step):
            m.d.sync += [self._flit.eq(self._flit + 1), self.address.eq(self.address + 1)]
            with m.If(flit_ends):
                m.d.sync += [self._flit.eq(0), self._peer.eq(self._peer + 1)]
                with m.If(peer_ends):
                    m.d.sync += [self._peer.eq(0), self.node.eq(self.node + 1)]
                    m.d.sync += self.address.eq(Mux(checking, layout.recv_base, layout.send_base))
        with m.If(fill | check):
            m.d.sync += [self._peer.eq(0), self._flit.eq(0)]
            m.d.sync += self.node.eq(Mux(check, first, 0))
            m.d.sync += self.address.eq(Mux(check, layout.recv_base, layout.send_base))
        return flit_ends & peer_ends & node_ends
