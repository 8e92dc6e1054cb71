"""The gateware that draws what a run of the self-test chooses."""

from collections.abc import Mapping
from typing import Any

from amaranth.hdl import Const, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .generator import HashGenerator
from .jobs import DRAWING, choice_bits

__all__ = ["JobDraw"]


class JobDraw(wiring.Component):
    """Computes `drawn_job`.

    Parameters
    ----------
    choices : dict of str to range
        As of `choices_of`; at least one.

    Members
    -------
    start : In(1)
    run : In(16)
        Must stay the same until the job is there.
    busy : Out(1)
        From the cycle after `start` until the job is there.
    mode, length, root, operation : Out
        Those that there is a choice of; they stay until the next start.
    """

    def __init__(self, choices: Mapping[str, range]) -> None:
        self._choices = choices
        super().__init__(
            {"start": In(1), "run": In(16), "busy": Out(1)}
            | {name: Out(bits) for name, bits in choice_bits(choices).items()}
        )

    def elaborate(self, platform: Any) -> Module:
        """Build the hash, and what looks whether its bits are a job."""
        m = Module()
        bits = choice_bits(self._choices)
        m.submodules.generator = generator = HashGenerator(sum(bits.values()))
        first, fits = 0, Const(1)
        for name, values in self._choices.items():
            part = generator.word[first : first + bits[name]]
            m.d.comb += getattr(self, name).eq(part)
            fits, first = fits & _within(part, values), first + bits[name]
        attempt = Signal(16, name="attempt")
        m.d.comb += [
            generator.run.eq(self.run),
            generator.destination.eq(DRAWING),
            generator.flit.eq(attempt),
        ]
        with m.FSM() as states:
            m.d.comb += self.busy.eq(~states.ongoing("IDLE"))
            with m.State("IDLE"), m.If(self.start):
                m.d.sync += attempt.eq(0)
                m.next = "START"
            with m.State("START"):
                m.d.comb += generator.start.eq(1)
                m.next = "WAIT"
            with m.State("WAIT"), m.If(~generator.busy):
                m.d.sync += attempt.eq(attempt + 1)
                m.next = "START"
                with m.If(fits):
                    m.next = "IDLE"
        return m


def _within(value: Value, values: range) -> Value:
    """Whether a value is in a range."""
    return (value >= values.start) & (value < values.stop)
