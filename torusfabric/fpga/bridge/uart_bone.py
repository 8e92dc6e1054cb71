"""`UartBone`: the protocol of LiteX's UARTBone in gateware, from bytes to Wishbone accesses.

The user is `Bridge`. The computer sends commands, most significant byte first::

    bytes  1        1      4             4 x words
           command  words  word address  data, for a write only

    answer to a read: 4 x words bytes of data; a write has no answer

A number of words of 0 means 256. Source: ``litex/soc/cores/uart.py``, Stream2Wishbone.
"""

import enum
from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ...contract.registers import BYTES, DATA_BITS

__all__ = ["BYTES", "Command", "UartBone"]


class Command(enum.IntEnum):
    """The first byte of a command: write or read, at rising addresses or at a fixed one."""

    WRITE = 1
    READ = 2
    #: Accesses to the same address for all words, as to a FIFO.
    WRITE_FIXED = 3
    READ_FIXED = 4


class UartBone(wiring.Component):
    """Bus master that executes the commands of the protocol on a Wishbone bus.

    A command whose bytes stop coming is dropped, so that the next command is understood. A first
    byte that is no `Command` is dropped, too. If the bus answers a read with an error, the word is
    all ones.

    Parameters
    ----------
    address_bits : int
        Bits of a word address; higher bits in a command have no effect.
    timeout : int
        Least number of cycles without a byte after which a command is dropped.

    Members
    -------
    received : In(stream of 8 bits)
        Bytes from the computer.
    answer : Out(stream of 8 bits)
        Bytes to the computer.
    wb_cyc, wb_stb, wb_we, wb_adr, wb_sel, wb_dat_w : Out
        Outputs of the bus master.
    wb_dat_r, wb_ack, wb_err : In
        Inputs of the bus master; an error ends an access, as an acknowledgement does.
    """

    def __init__(self, address_bits: int, timeout: int) -> None:
        self._timeout = timeout
        super().__init__(
            {
                "received": In(stream.Signature(8)),
                "answer": Out(stream.Signature(8)),
                "wb_cyc": Out(1),
                "wb_stb": Out(1),
                "wb_we": Out(1),
                "wb_adr": Out(address_bits),
                "wb_sel": Out(BYTES),
                "wb_dat_w": Out(DATA_BITS),
                "wb_dat_r": In(DATA_BITS),
                "wb_ack": In(1),
                "wb_err": In(1),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Build the state machine: command, length, address, then words and accesses in turn."""
        m = Module()
        byte, heard = self.received.payload, self.received.valid
        writing, fixed = Signal(name="writing"), Signal(name="fixed")
        left = Signal(8, name="left")  # words after this one; all ones after the last
        count, data = Signal(range(BYTES), name="count"), Signal(DATA_BITS, name="data")
        last = count == BYTES - 1
        m.d.comb += [
            self.wb_dat_w.eq(data),
            self.wb_sel.eq(-1),
            self.wb_we.eq(writing),
            self.wb_stb.eq(self.wb_cyc),
            self.answer.payload.eq(data[-8:]),
        ]
        with m.FSM() as states:
            receiving = [states.ongoing(name) for name in ("LENGTH", "ADDRESS", "WORD")]
            late = self._timeout_signal(m, Cat(receiving).any() & ~heard)
            m.d.comb += self.received.ready.eq(Cat(receiving, states.ongoing("COMMAND")).any())
            with m.State("COMMAND"):
                m.d.sync += [count.eq(0), writing.eq(byte[0]), fixed.eq(byte > Command.READ)]
                with m.If(heard & (byte >= Command.WRITE) & (byte <= Command.READ_FIXED)):
                    m.next = "LENGTH"
            with m.State("LENGTH"):
                with m.If(heard):
                    m.d.sync += left.eq(byte - 1)
                    m.next = "ADDRESS"
                with m.Elif(late):
                    m.next = "COMMAND"
            with m.State("ADDRESS"):
                with m.If(heard):
                    m.d.sync += [self.wb_adr.eq(Cat(byte, self.wb_adr)), count.eq(count + 1)]
                    with m.If(last):
                        m.next = "ACCESS"
                    with m.If(last & writing):
                        m.next = "WORD"
                with m.Elif(late):
                    m.next = "COMMAND"
            with m.State("WORD"):
                with m.If(heard):
                    m.d.sync += [data.eq(Cat(byte, data)), count.eq(count + 1)]
                    with m.If(last):
                        m.next = "ACCESS"
                with m.Elif(late):
                    m.next = "COMMAND"
            with m.State("ACCESS"):
                self._add_access(m, left, data, writing=writing, fixed=fixed)
            with m.State("ANSWER"):
                m.d.comb += self.answer.valid.eq(1)
                with m.If(self.answer.ready):
                    m.d.sync += [data.eq(data << 8), count.eq(count + 1)]
                    with m.If(last):
                        m.next = "ACCESS"
                    with m.If(last & left.all()):
                        m.next = "COMMAND"
        return m

    def _add_access(
        self, m: Module, left: Signal, data: Signal, *, writing: Value, fixed: Value
    ) -> None:
        """Add the logic of one state of the state machine: a bus access for one word.

        At the acknowledgement, a read goes on to the state that sends the word. A write goes on to
        the next word of the command, or to the next command.

        Parameters
        ----------
        m : Module
            The module to which the statements are added, inside the state.
        left : Signal
            Number of further words of the command.
        data : Signal
            The word to write, and the word that was read.
        writing : Value
            High if the command writes.
        fixed : Value
            High if all words have the same address.
        """
        m.d.comb += self.wb_cyc.eq(1)
        with m.If(self.wb_ack | self.wb_err):
            m.d.sync += [left.eq(left - 1), self.wb_adr.eq(self.wb_adr + ~fixed)]
            m.d.sync += data.eq(self.wb_dat_r | self.wb_err.replicate(DATA_BITS))
            with m.If(~writing):
                m.next = "ANSWER"
            with m.Elif(left == 0):
                m.next = "COMMAND"
            with m.Else():
                m.next = "WORD"

    def _timeout_signal(self, m: Module, waits: Value) -> Value:
        """Return a signal that is high once `waits` has been high for at least `timeout` cycles.

        The number of cycles is rounded up to a power of two, which saves a comparator.
        """
        bits = (self._timeout - 1).bit_length()
        waited = Signal(bits + 1, name="waited")
        m.d.sync += waited.eq(Mux(waits, waited + 1, 0))
        return waited[-1]
