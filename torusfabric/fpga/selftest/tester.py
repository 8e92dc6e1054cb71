"""The tester: fills every send memory with a pattern, runs the fabric, and compares every word."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import enum, wiring
from amaranth.lib.wiring import In, Out

from .expected import ExpectedWord

__all__ = ["PATIENCE", "HostPort", "Result", "Tester"]

#: Cycles after the predicted end before a run is given up.
PATIENCE = 16


class Result(enum.Enum, shape=2):  # type: ignore[call-arg]
    """What came of a run."""

    PASS = 0
    WRONG = 1  #: a word is not what it should be
    LATE = 2  #: the fabric was not done when predicted


def HostPort(fabric):
    """The signature of what drives a fabric."""
    inputs, outputs = fabric.netlist.inputs, fabric.netlist.outputs
    return wiring.Signature(
        {name: Out(width) for name, width in inputs.items()}
        | {name: In(width) for name, width in outputs.items()}
    )


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
        Goes into the pattern.
    busy : Out(1)
    result : Out(Result)
        Of the last test. Where it is `Result.WRONG`, `node`, `place`, `expected` and `got` tell the
        first wrong word; the place is an address, as of the host port.
    host : Out(HostPort)
        Must be connected to the fabric while busy.
    """

    def __init__(self, fabric):
        self._fabric = fabric
        inputs = fabric.netlist.inputs
        super().__init__(
            {
                "start": In(1),
                "run": In(16),
                "busy": Out(1),
                "result": Out(Result),
                "node": Out(inputs["host_node"]),
                "place": Out(inputs["host_addr"]),
                "expected": Out(fabric.width),
                "got": Out(fabric.width),
                "host": Out(HostPort(fabric)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        fabric, host = self._fabric, self.host
        m.submodules.word = word = ExpectedWord(fabric.program, fabric.width)
        # The word is computed while the one to compare is read.
        read = fabric.read_latency + 1
        count, waited = Signal(range(read + 1)), Signal(range(fabric.cycles + PATIENCE + 1))
        checking, fill, check, step = Signal(), Signal(), Signal(), Signal()
        last = self._places(m, checking, fill, check, step)
        m.d.comb += [
            word.run.eq(self.run),
            word.node.eq(self.node),
            word.peer.eq(self._peer),
            word.flit.eq(self._flit),
            word.received.eq(checking),
            host.host_node.eq(self.node),
            host.host_addr.eq(self.place),
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
                with m.If(checking & (self.got != word.word)):
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
                with m.If(host.done | (waited == fabric.cycles + PATIENCE)):
                    # The upper bits cannot be set so soon, and would cost as much.
                    counted = host.cycles[: len(waited)] == fabric.cycles
                    on_time = (waited == fabric.cycles) & counted
                    m.d.sync += self.result.eq(Result.LATE)
                    m.next = "IDLE"
                    with m.If(host.done & on_time):
                        m.next = "WORD"
        return m

    def _places(self, m, checking, fill, check, step):
        """Count through the words of all nodes; returns what is high at the last one."""
        layout, collective = self._fabric.layout, self._fabric.program.blocks.collective
        flits, nodes = self._fabric.flits, self._fabric.nodes
        self._peer, self._flit = Signal(range(max(nodes, 2))), Signal(range(max(flits, 2)))
        # A node sends, or has received, a message for, or of, each of so many nodes.
        sent, received = layout.send_words // flits, layout.recv_words // flits
        first, last = (collective.root,) * 2 if collective.to_root else (0, nodes - 1)
        flit_ends = self._flit == flits - 1
        peer_ends = self._peer == Mux(checking, received - 1, sent - 1)
        node_ends = self.node == Mux(checking, last, nodes - 1)
        with m.If(step):
            m.d.sync += [self._flit.eq(self._flit + 1), self.place.eq(self.place + 1)]
            with m.If(flit_ends):
                m.d.sync += [self._flit.eq(0), self._peer.eq(self._peer + 1)]
                with m.If(peer_ends):
                    m.d.sync += [self._peer.eq(0), self.node.eq(self.node + 1)]
                    m.d.sync += self.place.eq(Mux(checking, layout.recv_base, layout.send_base))
        with m.If(fill | check):
            m.d.sync += [self._peer.eq(0), self._flit.eq(0)]
            m.d.sync += self.node.eq(Mux(check, first, 0))
            m.d.sync += self.place.eq(Mux(check, layout.recv_base, layout.send_base))
        return flit_ends & peer_ends & node_ends
