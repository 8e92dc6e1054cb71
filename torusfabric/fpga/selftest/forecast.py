"""The cycles that a run is predicted to take: known when the image is made, for every job."""

from typing import TYPE_CHECKING, Any

from amaranth.hdl import Const, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ...rtl.memories import address_width, rom_and_port
from .of_mode import chosen_number

if TYPE_CHECKING:
    from ...rtl.fabric import Fabric

__all__ = ["Forecast"]


class Forecast(wiring.Component):
    """Looks up the cycles of a run by its mode and its length.

    Parameters
    ----------
    fabric : Fabric

    Members
    -------
    mode, length : In
    cycles : Out
        Two cycles after mode and length; of a fabric that leaves no choice of them, a constant.
    """

    def __init__(self, fabric: "Fabric") -> None:
        program = fabric.program
        self._lengths = range(1, fabric.flits + 1) if program.any_length else [fabric.flits]
        modes = range(len(program.modes))
        self._cycles = [program.cycles(length, mode=k) for k in modes for length in self._lengths]
        super().__init__(
            {
                "mode": In(address_width(len(modes))),
                "length": In(fabric.flits.bit_length()),
                "cycles": Out(range(self.most + 1)),
            }
        )

    @property
    def most(self) -> int:
        """The cycles of the longest run."""
        return max(self._cycles)

    def elaborate(self, platform: Any) -> Module:
        """Build a ROM with a row for each length of each mode."""
        m = Module()
        cycles, lengths = self._cycles, len(self._lengths)
        if len(cycles) == 1:
            m.d.comb += self.cycles.eq(cycles[0])
            return m
        m.submodules.table, port = rom_and_port("table", cycles, len(self.cycles))
        address = Signal(range(len(cycles)), name="address")
        first = chosen_number([*range(0, len(cycles), lengths)], self.mode)
        within = self.length - self._lengths[0] if lengths > 1 else Const(0)
        m.d.sync += address.eq(first + within)
        m.d.comb += [port.addr.eq(address), self.cycles.eq(port.data)]
        return m
