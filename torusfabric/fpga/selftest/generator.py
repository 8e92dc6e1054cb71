"""The gateware that computes the hash of a flit."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ...rtl.memories import choose
from .words import CONSTANTS, SPREADING, state_bits

__all__ = ["INPUTS", "ROUNDS", "HashGenerator"]

#: The values that the hash takes in, in this order.
INPUTS = ("run", "origin", "destination", "flit")

#: Cycles that a hash takes.
ROUNDS = len(INPUTS) + SPREADING


class HashGenerator(wiring.Component):
    """Computes `hash_word`, in `ROUNDS` cycles after `start`.

    Parameters
    ----------
    width : int

    Members
    -------
    start : In(1)
    run, origin, destination, flit : In(16)
        Must stay the same until the word is there.
    busy : Out(1)
        From the cycle after `start` until the word is there.
    word : Out(width)
        Stays until the next start.
    """

    def __init__(self, width: int) -> None:
        self._width = width
        super().__init__(
            {"start": In(1), "busy": Out(1), "word": Out(width)} | {name: In(16) for name in INPUTS}
        )

    def elaborate(self, platform: Any) -> Module:
        """Build the register of the hash and what it takes in."""
        m = Module()
        bits = state_bits(self._width)
        initial, k, turn = CONSTANTS[bits]
        state, mixed = Signal(bits, name="state"), Signal(bits, name="mixed")
        step = Signal(range(ROUNDS + 1), init=ROUNDS, name="step")
        values = [getattr(self, name) for name in INPUTS]
        value = Mux(step < len(INPUTS), choose(values, step[:2]), Const(0, 16))
        m.d.comb += [mixed.eq(state ^ value), self.busy.eq(step != ROUNDS)]
        with m.If(self.start):
            m.d.sync += [state.eq(initial), step.eq(0)]
        with m.Elif(self.busy):
            m.d.sync += state.eq((mixed + (mixed << k))[:bits].rotate_left(turn))
            m.d.sync += step.eq(step + 1)
        copies = [state.rotate_left(n % bits) for n in range(-(-self._width // bits))]
        m.d.comb += self.word.eq(Cat(*copies))
        return m
