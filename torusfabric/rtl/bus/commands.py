"""What makes commands of registers, where nodes have streams: one run after another."""

from __future__ import annotations

from collections.abc import Mapping

from amaranth.hdl import Const, Module, Signal, Value
from amaranth.lib.wiring import In, Out

from ..memories import choose
from ..modules import Leaf
from ..run_choices import ERROR_BITS
from ..streams.ports import COMMAND, COMMAND_BITS, STATUS

__all__ = ["STATES", "CommandPort"]

#: What is known of the last run, and its bits.
STATES = {"busy": 1, "done": 1, "error": ERROR_BITS, "cycles": 32}


class CommandPort(Leaf):
    """Sends a command for each start, and keeps what its status says.

    Parameters
    ----------
    choices : mapping of str to int
        What is chosen for a run, by the names of `COMMAND`, and its bits.

    Members
    -------
    start : In(1)
        A pulse of one cycle sends a command; ignored while busy.
    mode, length, root, operation : In
        Sampled with it, as far as there is a choice.
    busy, done, error, cycles : Out
        From the edge after the start until the status has come; then done, until the next start.
    tdata, tvalid, tlast : Out
    tready : In(1)
        The stream of commands.
    status_tdata, status_tvalid, status_tlast : In
    status_tready : Out(1)
        The stream of statuses.
    """

    def __init__(self, choices: Mapping[str, int]) -> None:
        self._choices = dict(choices)
        super().__init__(
            {
                "start": In(1),
                **{name: In(bits) for name, bits in choices.items()},
                **{name: Out(bits) for name, bits in STATES.items()},
                "tdata": Out(COMMAND_BITS),
                "tvalid": Out(1),
                "tready": In(1),
                "tlast": Out(1),
                "status_tdata": In(COMMAND_BITS),
                "status_tvalid": In(1),
                "status_tready": Out(1),
                "status_tlast": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build the words that are sent, and what is kept of those that come."""
        m = Module()
        number, begins = Signal(range(len(COMMAND)), name="number"), Signal(name="begins")
        words: list[Value] = []
        m.d.comb += begins.eq(self.value("start") & ~self.busy)
        for name in COMMAND:
            kept: Value = Const(0, COMMAND_BITS)
            if name in self._choices:
                kept = Signal(self._choices[name], name=f"kept_{name}", reset_less=True)
                with m.If(begins):
                    m.d.sync += kept.eq(self.value(name))
            words.append(kept)
        comes = self.value("status_tvalid")
        beat = Signal(range(len(STATUS)), name="status_beat")
        m.d.comb += [
            self.tdata.eq(choose(words, number)),
            self.tlast.eq(number == len(COMMAND) - 1),
            self.status_tready.eq(1),
        ]
        with m.If(begins):
            m.d.sync += [self.busy.eq(1), self.done.eq(0), self.tvalid.eq(1)]
        with m.If(self.tvalid & self.value("tready")):
            m.d.sync += [self.tvalid.eq(~self.tlast), number.eq(number + 1)]
            with m.If(self.tlast):
                m.d.sync += number.eq(0)
        with m.If(comes):
            m.d.sync += beat.eq(beat + 1)
            with m.If(beat == STATUS.index("error")):
                m.d.sync += self.error.eq(self.value("status_tdata"))
            with m.If(self.value("status_tlast")):
                m.d.sync += [beat.eq(0), self.cycles.eq(self.value("status_tdata"))]
                m.d.sync += [self.busy.eq(0), self.done.eq(1)]
        return m
