"""Wishbone: the bridge to a classic bus."""

from amaranth.hdl import Module
from amaranth.lib.wiring import In, Out

from ..netlist import Leaf
from .protocol import Bus, bus_inputs, bus_outputs
from .registers import ANSWERS, accesses

__all__ = ["WishboneBridge"]


class WishboneBridge(Leaf):
    """Wishbone B4, classic cycles: an access is on the bus until it is acknowledged.

    Parameters
    ----------
    address_bits : int
        Of the address of a bus word.

    Members
    -------
    wb_.. : In, Out
        The bus.
    access.. : Out, In
        What `Registers` is given, and gives.
    """

    def __init__(self, address_bits: int) -> None:
        given = bus_inputs(Bus.WISHBONE, address_bits) | ANSWERS
        gives = bus_outputs(Bus.WISHBONE) | accesses(address_bits)
        super().__init__(
            {name: In(width) for name, width in given.items()}
            | {name: Out(width) for name, width in gives.items()}
        )

    def elaborate(self, platform: object) -> Module:
        """Connect the two."""
        m = Module()
        selected = self.value("wb_cyc") & self.value("wb_stb")
        done, error = self.value("access_done"), self.value("access_error")
        m.d.comb += [
            self.access.eq(selected),
            self.access_write.eq(self.value("wb_we")),
            self.access_address.eq(self.value("wb_adr")),
            self.access_strobes.eq(self.value("wb_sel")),
            self.access_data.eq(self.value("wb_dat_w")),
            self.wb_dat_r.eq(self.value("access_word")),
            self.wb_ack.eq(selected & done & ~error),
            self.wb_err.eq(selected & done & error),
        ]
        return m
