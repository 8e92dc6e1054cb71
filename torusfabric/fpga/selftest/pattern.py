"""The words that the self-test sends: a hash, computed alike in Python and in hardware.

A word tells the run, its origin, its destination (where there is one) and its flit apart. The hash
takes in one value a cycle, h := rotate((h ^ value) * (2^k + 1)), a bijection of h for any value:
two flits of one message never have the same hash, and what collides in narrow words does so in one
run and not in the next.
"""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ...rtl.memories import choose

__all__ = ["INPUTS", "ROUNDS", "Pattern", "state_bits", "word"]

#: What is taken in, in this order; then come rounds without a value that spread the last one.
INPUTS = ("run", "origin", "destination", "flit")
ROUNDS = len(INPUTS) + 3

#: Bits of state -> initial state, k, bits to rotate by.
CONSTANTS = {16: (0x9E37, 3, 5), 32: (0x9E3779B9, 3, 11)}


def state_bits(width):
    """Bits of the hash; a wider word repeats it, rotated by a bit more each time."""
    return 16 if width <= 16 else 32


def word(width, run, origin, destination, flit):
    """The word of a flit.

    Parameters
    ----------
    width : int
        Bits of a flit.
    run, origin, destination, flit : int
        The destination is 0 where there is none.

    Returns
    -------
    int
    """
    bits = state_bits(width)
    mask = (1 << bits) - 1
    h, k, turn = CONSTANTS[bits]
    rotate = lambda x, n: (x << n | x >> (bits - n)) & mask
    for value in (run, origin, destination, flit, 0, 0, 0):
        mixed = (h ^ value) & mask
        h = rotate((mixed + (mixed << k)) & mask, turn)
    whole = sum(rotate(h, n % bits) << n * bits for n in range(-(-width // bits)))
    return whole & ((1 << width) - 1)


class Pattern(wiring.Component):
    """Computes `word`, in `ROUNDS` cycles after `start`.

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

    def __init__(self, width):
        self._width = width
        super().__init__(
            {"start": In(1), "busy": Out(1), "word": Out(width)} | {name: In(16) for name in INPUTS}
        )

    def elaborate(self, platform):
        m = Module()
        bits = state_bits(self._width)
        initial, k, turn = CONSTANTS[bits]
        h, mixed, step = Signal(bits), Signal(bits), Signal(range(ROUNDS + 1), init=ROUNDS)
        values = [getattr(self, name) for name in INPUTS]
        value = Mux(step < len(INPUTS), choose(values, step[:2]), Const(0, 16))
        m.d.comb += [mixed.eq(h ^ value), self.busy.eq(step != ROUNDS)]
        with m.If(self.start):
            m.d.sync += [h.eq(initial), step.eq(0)]
        with m.Elif(self.busy):
            m.d.sync += [h.eq((mixed + (mixed << k))[:bits].rotate_left(turn)), step.eq(step + 1)]
        copies = [h.rotate_left(n % bits) for n in range(-(-self._width // bits))]
        m.d.comb += self.word.eq(Cat(*copies))
        return m
