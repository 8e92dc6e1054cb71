"""Wishbone: the bridge to a classic bus."""

from amaranth.hdl import Module

from .bridge import Bridge
from .protocol import Bus

__all__ = ["WishboneBridge"]


class WishboneBridge(Bridge):
    """Wishbone B4, classic cycles: an access is on the bus until it is acknowledged."""

    bus = Bus.WISHBONE

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
