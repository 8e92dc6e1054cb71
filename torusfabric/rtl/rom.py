"""The ROM that netlists have instances of, as a component for Amaranth's simulator.

In Verilog it is the module of ``rom.v`` in the `verilog` room, which takes depth, width and
contents as parameters; the compiled engine has it as a class of its own, with the contents as data.
"""

from collections.abc import Sequence

from amaranth.hdl import Module
from amaranth.lib.wiring import In, Out

from .leaf import Leaf
from .memories import address_width, rom_and_port

__all__ = ["Rom"]


class Rom(Leaf):
    """A synchronous ROM: a row is there one cycle after its address, and stays as long as that.

    Parameters
    ----------
    contents : sequence of int
        The rows. Past the end it reads the last one.
    width : int
        Bits of a row.

    Members
    -------
    address : In
    data : Out(width)
        A register that is not reset; it starts as 0.
    """

    def __init__(self, contents: Sequence[int], width: int) -> None:
        bits = address_width(len(contents))
        super().__init__({"address": In(bits), "data": Out(width)})
        rows = [*contents, *[contents[-1]] * ((1 << bits) - len(contents))]
        self._memory, self._port = rom_and_port("rows", rows, width)
        self.data = self._port.data

    def elaborate(self, platform: object) -> Module:
        """Bind the address to the port of the memory."""
        m = Module()
        m.submodules.rows = self._memory
        # The signal of the port is replaced, so that the simulator has nothing to evaluate.
        self._port.addr = self.value("address")
        return m
