"""Bridges: what each speaks with the registers, whatever the protocol of its bus."""

from typing import ClassVar

from amaranth.lib.wiring import In, Out

from ..netlist import Leaf
from .protocol import BYTES, DATA_BITS, Bus, bus_inputs, bus_outputs

__all__ = ["ANSWERS", "Bridge", "accesses"]

#: What a bridge is given by the registers, and its width.
ANSWERS = {"access_done": 1, "access_error": 1, "access_word": DATA_BITS}


def accesses(address_bits: int) -> dict[str, int]:
    """What a bridge gives to the registers, and its width.

    Parameters
    ----------
    address_bits : int
        Of the address of a bus word.
    """
    return {
        "access": 1,
        "access_write": 1,
        "access_address": address_bits,
        "access_strobes": BYTES,
        "access_data": DATA_BITS,
    }


class Bridge(Leaf):
    """Speaks the protocol of a bus: makes accesses of it, and answers of theirs.

    Parameters
    ----------
    address_bits : int
        Of the address of a bus word.

    Members
    -------
    ..
        The ports of the bus.
    access.. : Out, In
        What `Registers` is given, and gives.
    """

    #: The bus whose protocol it speaks.
    bus: ClassVar[Bus]

    def __init__(self, address_bits: int) -> None:
        given = bus_inputs(self.bus, address_bits) | ANSWERS
        gives = bus_outputs(self.bus) | accesses(address_bits)
        super().__init__(
            {name: In(width) for name, width in given.items()}
            | {name: Out(width) for name, width in gives.items()}
        )
