"""What the ports of the buses mean."""

from .port_meaning import PortMeaning, Protocol

__all__ = ["BUS_MEANINGS"]

WISHBONE = {
    "wb_cyc": "a bus cycle is under way",
    "wb_stb": "an access is asked for, until wb_ack or wb_err",
    "wb_we": "it is a write",
    "wb_adr": "the address of a word of 32 bits",
    "wb_sel": "the bytes to write: all; none does nothing",
    "wb_dat_w": "the word to write",
    "wb_dat_r": "the word read, with wb_ack",
    "wb_ack": "the access is done",
    "wb_err": "the access is refused",
}

AXI_LITE = {
    "awaddr": "the address of the first byte of the word to write",
    "awprot": "not used",
    "awvalid": "awaddr is there",
    "awready": "awaddr is taken, with wdata",
    "wdata": "the word to write",
    "wstrb": "the bytes to write: all; none does nothing",
    "wvalid": "wdata is there",
    "wready": "wdata is taken, with awaddr",
    "bresp": "0 if the write is done, 2 (SLVERR) if it is refused",
    "bvalid": "bresp is there",
    "bready": "bresp is taken",
    "araddr": "the address of the first byte of the word to read",
    "arprot": "not used",
    "arvalid": "araddr is there",
    "arready": "araddr is taken",
    "rdata": "the word read",
    "rresp": "0 if the word is read, 2 (SLVERR) if that is refused",
    "rvalid": "rdata is there",
    "rready": "rdata is taken",
}

#: What every port of the buses is for.
BUS_MEANINGS = {
    **{name: PortMeaning("bus", Protocol.WISHBONE, meaning) for name, meaning in WISHBONE.items()},
    **{
        f"s_axil_{name}": PortMeaning("bus", Protocol.AXI_LITE, meaning)
        for name, meaning in AXI_LITE.items()
    },
}
