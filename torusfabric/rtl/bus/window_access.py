"""Windows: what the address of an access says, and flits of several bus words."""

from amaranth.hdl import Cat, Const, Module, Signal, Value

from .protocol import DATA_BITS
from .register_map import RegisterMap

__all__ = ["FlitParts", "WindowAddress"]


class WindowAddress:
    """An address of a bus word, taken apart: quarter, node, flit and part, from the top.

    Parameters
    ----------
    register_map : RegisterMap
    address : Value

    Attributes
    ----------
    quarter : Value
    node, flit : Value
    part : Value
        The number of the bus word within the flit.
    place : Value
        Node and flit.
    """

    def __init__(self, register_map: RegisterMap, address: Value) -> None:
        self._map = register_map
        part_bits, quarter_bits = register_map.part_bits, register_map.quarter_bits
        self.part, self.place = address[:part_bits], address[part_bits:quarter_bits]
        self.flit = self.place[: register_map.flit_bits]
        self.node = self.place[register_map.flit_bits :]
        self.quarter = address[quarter_bits:]

    def serves(self, write: Value) -> Value:
        """Whether there is such a word, and it is one to be written or read."""
        send, receive = self._map.windows
        return (
            (self.node < send.nodes)
            & (self.part < self._map.parts)
            & (
                (self.quarter == 1) & write & (self.flit < send.flits)
                | (self.quarter == 2) & ~write & (self.flit < receive.flits)
            )
        )


class FlitParts:
    """The bus words of a flit that is being written; low word first.

    Parameters
    ----------
    parts : int
    at : WindowAddress
        Of the bus word that is written now.
    data : Value
        It.

    Attributes
    ----------
    fits : Value
        Whether it is the first of a flit, or the next of the flit before.
    last : Value
        Whether it is the last of a flit.
    flit : Value
        The whole flit, if it is.
    """

    def __init__(self, parts: int, at: WindowAddress, data: Value) -> None:
        self._at, self._data = at, data
        self._held = [Signal(DATA_BITS, name=f"held_{k}") for k in range(parts - 1)]
        self._place = Signal(len(at.place), name="held_place")
        self._next = Signal(range(parts), name="next_part")
        self.fits: Value = Const(1)
        self.last: Value = Const(1)
        if parts > 1:
            follows = (at.part == self._next) & (at.place == self._place)
            self.fits, self.last = (at.part == 0) | follows, at.part == parts - 1
        self.flit = Cat(*self._held, data)

    def take(self, m: Module) -> None:
        """Hold the word, and expect the next."""
        if not self._held:
            return
        at = self._at
        for k, held in enumerate(self._held):
            with m.If(at.part == k):
                m.d.sync += held.eq(self._data)
        m.d.sync += [self._place.eq(at.place), self._next.eq(at.part + 1)]
