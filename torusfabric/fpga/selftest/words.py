"""The words that the self-test sends: a hash, computed alike in Python and in hardware.

A word depends on the run, its origin, its destination (where there is one) and its flit. The hash
takes in one value a cycle, h := rotate((h ^ value) * (2^k + 1)), a bijection of h for any value:
two flits of one message never have the same hash, and what collides in narrow words does so in one
run and not in the next.

In a reduction by `add` or `xor` every origin counts, whatever the others send. With the other
operators a few words of many hide the rest: of 64 words no bit is left by `and`, and a fabric that
delivers zeros passes. So there only two to four origins send a hash, others in each run and for
each flit, and all others the identity of the operator.
"""

from dataclasses import dataclass

from ...collective import ADD, Collective, Operator

__all__ = ["CONSTANTS", "SentWords", "hash_word", "state_bits"]

#: Bits of state -> initial state, k, bits to rotate by.
CONSTANTS = {16: (0x9E37, 3, 5), 32: (0x9E3779B9, 3, 11)}

#: Rounds without a value at the end, which spread the last one.
SPREADING = 3


def state_bits(width: int) -> int:
    """Bits of the hash; a wider word repeats it, rotated by a bit more each time."""
    return 16 if width <= 16 else 32


def hash_word(width: int, run: int, origin: int, destination: int, flit: int) -> int:
    """The hash of a flit.

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
    state, k, turn = CONSTANTS[bits]
    for value in (run, origin, destination, flit, *[0] * SPREADING):
        mixed = (state ^ value) & mask
        state = _rotate((mixed + (mixed << k)) & mask, turn, bits)
    whole = sum(_rotate(state, n % bits, bits) << n * bits for n in range(-(-width // bits)))
    return whole & ((1 << width) - 1)


def _rotate(value: int, turn: int, bits: int) -> int:
    """Rotate so many bits to the left."""
    return (value << turn | value >> (bits - turn)) & ((1 << bits) - 1)


@dataclass(frozen=True)
class SentWords:
    """The words that the nodes of a fabric send in a self-test.

    Parameters
    ----------
    collective : Collective
    nodes : int
    width : int
        Bits of a flit.
    operator : Operator
        Of a reduction; otherwise it has no effect.
    """

    collective: Collective
    nodes: int
    width: int
    operator: Operator = ADD

    @property
    def identity(self) -> int:
        """The word of the origins that do not count."""
        return self.operator.identity(self.width)

    @property
    def selecting_bits(self) -> int:
        """How many low bits of its number select whether an origin counts; 0 where all do."""
        if not self.collective.reducing or not self.operator.hides:
            return 0
        return max(self.nodes.bit_length() - 2, 0)

    def word(self, run: int, origin: int, destination: int, flit: int) -> int:
        """The word of a flit; parameters as of `hash_word`."""
        selecting = (1 << self.selecting_bits) - 1
        if (origin ^ (run + destination + flit)) & selecting:
            return self.identity
        return hash_word(self.width, run, origin, destination, flit)
