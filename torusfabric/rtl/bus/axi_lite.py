"""AXI4-Lite: the bridge to five channels."""

from amaranth.hdl import Module, Mux, Signal

from .bridge import Bridge
from .protocol import BYTES, Bus

__all__ = ["AxiLiteBridge"]

#: The response that tells of an error: SLVERR. Without one it is 0, OKAY.
SLAVE_ERROR = 2


class AxiLiteBridge(Bridge):
    """AXI4-Lite: reads and writes in turn, one at a time.

    A write begins once both its address and its data are there. They are accepted when it is
    carried out, so that nothing has to be held here; the response follows in the next cycle and
    waits to be accepted.
    """

    bus = Bus.AXI_LITE

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
