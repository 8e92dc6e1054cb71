"""Bridges: modules that translate transfers of a bus into single accesses of `Registers`.

An *access* is a read or a write of one word of 32 bits, the *bus word*. A bridge holds it until
`Registers` asserts `access_done`. `BRIDGES` has the bridge of each bus. A fabric behind AXI4 has
two ports: the AXI4-Lite bridge serves the registers, and `torusfabric.adapters.bus.windows`
executes the bursts.
"""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal

from ...contract.registers import BYTES
from ...rtl.netlist import Leaf
from .options import Bus
from .ports import SLAVE_ERROR, access_members, members_of_ports, sort_inputs_first, word_ports

__all__ = ["BRIDGES"]


class BusBridge(Leaf):
    """Base class of the bridges: modules that translate transfers of a bus into accesses.

    An access is a read or a write of one word of 32 bits; the module `Registers` executes it.

    Its members are the ports of the bus, and the members `access..` of `Registers`, in the opposite
    direction.

    Parameters
    ----------
    bus : Bus
        The bus, which decides the ports.
    address_bits : int
        Bits of an address that counts bus words of 32 bits.
    """

    def __init__(self, bus: Bus, address_bits: int) -> None:
        answers = {name: each.flip() for name, each in access_members(address_bits).items()}
        super().__init__(
            sort_inputs_first(members_of_ports(word_ports(bus, address_bits)) | answers)
        )


class WishboneBridge(BusBridge):
    """Bridge from Wishbone B4 (classic cycles) to `Registers`, which executes single accesses.

    The bridge has no registers. Why: a Wishbone master holds a request until it is acknowledged,
    and `Registers` requires the same of a bridge.
    """

    def elaborate(self, platform: object) -> Module:
        """Connect the ports of the bus with the ports of `Registers`, by wires and gates alone."""
        m = Module()
        selected = self.input_value("wb_cyc") & self.input_value("wb_stb")
        done, error = self.input_value("access_done"), self.input_value("access_error")
        m.d.comb += [
            self.access.eq(selected),
            self.access_write.eq(self.input_value("wb_we")),
            self.access_address.eq(self.input_value("wb_adr")),
            self.access_strobes.eq(self.input_value("wb_sel")),
            self.access_data.eq(self.input_value("wb_dat_w")),
            self.wb_dat_r.eq(self.input_value("access_word")),
            self.wb_ack.eq(selected & done & ~error),
            self.wb_err.eq(selected & done & error),
        ]
        return m


class AxiLiteBridge(BusBridge):
    """Bridge from AXI4-Lite to `Registers`, which executes one read or write at a time.

    A write begins when both address and data are valid. A request is accepted (``ready``) in the
    cycle in which `Registers` has executed it, so that the bridge needs no registers for address
    and data. The response is valid from the next cycle until the master accepts it. If reads and
    writes both wait, they take turns. A further write waits until the master has accepted the
    response to the last write; the same holds for reads.
    """

    def elaborate(self, platform: object) -> Module:
        """Build the choice between a waiting read and a waiting write, and the responses."""
        m = Module()
        done, error = self.input_value("access_done"), self.input_value("access_error")
        wants_write = (
            self.input_value("s_axil_awvalid")
            & self.input_value("s_axil_wvalid")
            & ~self.s_axil_bvalid
        )
        wants_read = self.input_value("s_axil_arvalid") & ~self.s_axil_rvalid
        writing = Signal(name="writing")
        with m.If(self.s_axil_bvalid & self.input_value("s_axil_bready")):
            m.d.sync += self.s_axil_bvalid.eq(0)
        with m.If(self.s_axil_rvalid & self.input_value("s_axil_rready")):
            m.d.sync += self.s_axil_rvalid.eq(0)
        response = Mux(error, SLAVE_ERROR, 0)
        with m.FSM():
            with m.State("IDLE"), m.If(wants_write | wants_read):
                # If both wait, a read follows a write, and a write follows a read.
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
                        self.s_axil_rdata.eq(self.input_value("access_word")),
                    ]
        byte_bits = (BYTES - 1).bit_length()
        address = Mux(writing, self.input_value("s_axil_awaddr"), self.input_value("s_axil_araddr"))
        m.d.comb += [
            self.access_write.eq(writing),
            self.access_address.eq(address[byte_bits:]),
            self.access_strobes.eq(self.input_value("s_axil_wstrb")),
            self.access_data.eq(self.input_value("s_axil_wdata")),
        ]
        return m


#: The bridge of each bus.
BRIDGES: dict[Bus, type[BusBridge]] = {
    Bus.WISHBONE: WishboneBridge, Bus.AXI_LITE: AxiLiteBridge, Bus.AXI4: AxiLiteBridge,
}  # fmt: skip
