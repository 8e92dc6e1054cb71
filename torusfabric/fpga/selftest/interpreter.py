"""The interpreter: commands of one letter, each after its number.

=========  ================================================================
``HEX n``  select this node
``HEX p``  point to this address, as of the host port
``HEX w``  write this word, and point to the next address
``HEX r``  read so many words (one, without a number), a line each, from consecutive addresses
``s``      start the fabric, wait until it is done, and answer the cycles
``HEX t``  test the fabric so many times (once, without a number), up to the first fault
``q``      answer the result of the last test again
``i``      answer what this is
=========  ================================================================

Where runs leave a choice, ``HEX m`` says which mode the next ones have, ``HEX l`` their length,
``HEX o`` the root, ``HEX k`` the operation; at first they are the longest ones of mode 0.

Numbers are hexadecimal, in lower case. Blanks and ends of lines do not count; anything else is
answered with a line of help. A host waits for the answer of a command before it sends the next.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from amaranth.hdl import Array, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from .jobs import LETTERS, choices_of
from .tester import Result, host_port

if TYPE_CHECKING:
    from ...rtl.fabric import Fabric

__all__ = ["Interpreter"]


class Interpreter(wiring.Component):
    """Carries out the commands that it receives as bytes, and one test at power-up.

    Parameters
    ----------
    fabric : Fabric
    starts : dict of str to int
        Where the sender's lines begin: ``pass``, ``wrong``, ``late``, ``word``, ``done``, ``info``,
        ``help``; and ``refused``, where runs leave a choice.

    Members
    -------
    data : In(stream of 8 bits)
    host : Out(host port)
    test, run : Out
        Starts the tester; the number of the run.
    testing, result : In
        Of the tester.
    send, line : Out
        Starts the sender; the line.
    sending : In(1)
        Of the sender.
    word : Out(width)
        The word that was read.
    passed, failed : Out(1)
        The result of the last test; neither is high during a test.
    """

    def __init__(self, fabric: "Fabric", starts: Mapping[str, int]) -> None:
        self._fabric, self._starts = fabric, starts
        super().__init__(
            {
                "data": In(stream.Signature(8)),
                "host": Out(host_port(fabric)),
                "test": Out(1),
                "run": Out(16),
                "testing": In(1),
                "result": In(Result),
                "send": Out(1),
                "line": Out(range(max(starts.values()) + 1)),
                "sending": In(1),
                "word": Out(fabric.width),
                "passed": Out(1),
                "failed": Out(1),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Build the state machine of the commands."""
        m = Module()
        fabric, host = self._fabric, self.host
        bits = max(16, fabric.width, len(host.host_node), len(host.host_addr))
        self._number = Signal(bits, name="number")
        self._wait = Signal(range(fabric.read_latency + 1), name="wait")
        self._number_left = Signal(16, name="number_left")
        m.d.comb += [
            self._number_left.eq(self._number[:16] - 1),
            host.host_wdata.eq(self._number),
        ]
        self._chosen = {
            name: Signal(
                len(getattr(host, name)), name=name, init=values[-1 if name == "length" else 0]
            )
            for name, values in choices_of(fabric).items()
        }
        m.d.comb += [getattr(host, name).eq(value) for name, value in self._chosen.items()]
        with m.If(host.host_we):
            m.d.sync += host.host_addr.eq(host.host_addr + 1)
        with m.FSM(init="TEST"):
            with m.State("IDLE"):
                m.d.comb += self.data.ready.eq(1)
                with m.If(self.data.valid):
                    self._decode(m)
            self._add_access(m)
            self._add_run(m)
            self._add_test(m)
            with m.State("ANSWER"), m.If(~self.sending & ~self.send):
                m.next = "IDLE"
        with m.If(self.send):
            m.d.sync += self.send.eq(0)
        return m

    def _add_access(self, m: Module) -> None:
        """Write a word, or read some and answer each."""
        host, number, wait = self.host, self._number, self._wait
        with m.State("WRITE"):
            m.d.comb += host.host_we.eq(1)
            m.d.sync += number.eq(0)
            m.next = "IDLE"
        with m.State("READ"):
            m.d.sync += [wait.eq(wait + 1), self.word.eq(host.host_rdata)]
            with m.If(wait == self._fabric.read_latency):
                m.d.sync += [wait.eq(0), host.host_addr.eq(host.host_addr + 1)]
                m.d.sync += number.eq(self._number_left)
                self._answer(m, "word", then="READ_MORE")
        with m.State("READ_MORE"), m.If(~self.sending & ~self.send):
            m.next = "READ"
            with m.If(number[:16] == 0):
                m.next = "IDLE"

    def _add_run(self, m: Module) -> None:
        """Start the fabric, and answer how the run ended."""
        host = self.host
        with m.State("START"):
            m.d.comb += host.start.eq(1)
            m.next = "RUN"
        with m.State("RUN"):
            with m.If(host.done):
                self._answer(m, "done")
            with m.Elif(self.data.valid):  # a byte ends the wait
                self._answer(m, "late")
            if self._chosen:
                with m.If(host.error != 0):
                    self._answer(m, "refused")

    def _add_test(self, m: Module) -> None:
        """Start the tester, again and again up to the first fault, and answer its result."""
        number = self._number
        verdict = Array([self._starts[name] for name in ("pass", "wrong", "late", "late")])
        with m.State("TEST"):
            m.d.comb += self.test.eq(1)
            m.d.sync += [self.run.eq(self.run + 1), self.passed.eq(0), self.failed.eq(0)]
            m.next = "TESTING"
        with m.State("TESTING"), m.If(~self.testing):
            passed = self.result == Result.PASS
            m.d.sync += [self.passed.eq(passed), self.failed.eq(~passed)]
            m.d.sync += number.eq(Mux(number[:16] == 0, 0, self._number_left))
            with m.If(passed & (number[:16] > 1)):
                m.next = "TEST"
            with m.Else():
                m.d.sync += [number.eq(0), self.line.eq(verdict[self.result.as_value()])]
                m.d.sync += self.send.eq(1)
                m.next = "ANSWER"
        with m.State("STATUS"):
            m.d.sync += [self.line.eq(verdict[self.result.as_value()]), self.send.eq(1)]
            m.next = "ANSWER"

    def _answer(self, m: Module, line: str, *, then: str = "ANSWER") -> None:
        """Start a line of the answer, and go on when it is sent."""
        m.d.sync += [self.line.eq(self._starts[line]), self.send.eq(1)]
        m.next = then

    def _decode(self, m: Module) -> None:
        """Take in a byte: a digit of the number, or a command."""
        code, number, host = self.data.payload, self._number, self.host
        digit = Signal(4, name="digit")
        m.d.comb += digit.eq(Mux(code[6], code[:4] + 9, code[:4]))
        with m.If(
            (code >= ord("0")) & (code <= ord("9")) | (code >= ord("a")) & (code <= ord("f"))
        ):
            m.d.sync += number.eq(number << 4 | digit)
        with m.Elif(code > ord(" ")):
            m.d.sync += number.eq(0)
            with m.Switch(code):
                with m.Case(ord("n")):
                    m.d.sync += host.host_node.eq(number)
                with m.Case(ord("p")):
                    m.d.sync += host.host_addr.eq(number)
                with m.Case(ord("w")):
                    m.d.sync += number.eq(number)
                    m.next = "WRITE"
                for name, chosen in self._chosen.items():
                    with m.Case(ord(LETTERS[name])):
                        m.d.sync += chosen.eq(number)
                with m.Case(ord("r")):
                    m.d.sync += number.eq(Mux(number[:16] == 0, 1, number))
                    m.next = "READ"
                with m.Case(ord("s")):
                    m.next = "START"
                with m.Case(ord("t")):
                    m.d.sync += number.eq(number)
                    m.next = "TEST"
                with m.Case(ord("q")):
                    m.next = "STATUS"
                with m.Case(ord("i")):
                    self._answer(m, "info")
                with m.Default():
                    self._answer(m, "help")
