"""Bridges: they make accesses to registers of what a master asks on a bus."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal

from ...contract.registers import BYTES
from ...rtl.netlist import Leaf
from .options import Bus
from .ports import SLAVE_ERROR, access_members, inputs_first, members, word_ports

__all__ = ["BRIDGES"]


class Bridge(Leaf):
    """Speaks the protocol of a bus: makes accesses of it, and answers of theirs.

    Its members are the ports of the bus, and what `Registers` has of an access, the other way.

    Parameters
    ----------
    address_bits : int
        Of the address of a bus word.
    """

    def __init__(self, bus: Bus, address_bits: int) -> None:
        answers = {name: each.flip() for name, each in access_members(address_bits).items()}
        super().__init__(inputs_first(members(word_ports(bus, address_bits)) | answers))


class WishboneBridge(Bridge):
    """Wishbone B4, classic cycles: an access is on the bus until it is acknowledged."""

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


class AxiLiteBridge(Bridge):
    """AXI4-Lite: reads and writes in turn, one at a time.

    A write begins once both its address and its data are there. They are accepted when it is
    carried out, so that nothing has to be held here; the response follows in the next cycle and
    waits to be accepted.
    """

    def elaborate(self, platform: object) -> Module:
        """Build the choice between reads and writes, and the responses."""
        m = Module()
        done, error = self.value("access_done"), self.value("access_error")
        wants_write = (
            self.value("s_axil_awvalid") & self.value("s_axil_wvalid") & ~self.s_axil_bvalid
        )
        wants_read = self.value("s_axil_arvalid") & ~self.s_axil_rvalid
        writing = Signal(name="writing")
        with m.If(self.s_axil_bvalid & self.value("s_axil_bready")):
            m.d.sync += self.s_axil_bvalid.eq(0)
        with m.If(self.s_axil_rvalid & self.value("s_axil_rready")):
            m.d.sync += self.s_axil_rvalid.eq(0)
        response = Mux(error, SLAVE_ERROR, 0)
        with m.FSM():
            with m.State("IDLE"), m.If(wants_write | wants_read):
                # Whoever had to wait comes next.
                m.d.sync += writing.eq(wants_write & ~(writing & wants_read))
                m.next = "ACCESS"
            with m.State("ACCESS"):
                m.d.comb += self.access.eq(1)
                with m.If(done):
                    m.next = "IDLE"
                with m.If(done & writing):
                    m.d.comb += [self.s_axil_awready.eq(1), self.s_axil_wready.eq(1)]
                    m.d.sync += [self.s_axil_bvalid.eq(1), self.s_axil_bresp.eq(response)]
                with m.Elif(done):
                    m.d.comb += self.s_axil_arready.eq(1)
                    m.d.sync += [
                        self.s_axil_rvalid.eq(1),
                        self.s_axil_rresp.eq(response),
                        self.s_axil_rdata.eq(self.value("access_word")),
                    ]
        byte_bits = (BYTES - 1).bit_length()
        address = Mux(writing, self.value("s_axil_awaddr"), self.value("s_axil_araddr"))
        m.d.comb += [
            self.access_write.eq(writing),
            self.access_address.eq(address[byte_bits:]),
            self.access_strobes.eq(self.value("s_axil_wstrb")),
            self.access_data.eq(self.value("s_axil_wdata")),
        ]
        return m


#: What speaks the protocol of each bus.
BRIDGES: dict[Bus, type[Bridge]] = {
    Bus.WISHBONE: WishboneBridge, Bus.AXI_LITE: AxiLiteBridge, Bus.AXI4: AxiLiteBridge,
}  # fmt: skip
