"""Buses: their names, and the ports of each."""

from __future__ import annotations

from ...schedule.model import Choice

__all__ = ["BYTES", "DATA_BITS", "Bus", "bus_inputs", "bus_outputs"]

#: Bits, and bytes, of a word of all buses.
DATA_BITS = 32
BYTES = DATA_BITS // 8


class Bus(Choice):
    """A bus that a fabric can stand behind.

    Examples
    --------
    >>> Bus("axi-lite").address_unit, Bus("wishbone").address_unit
    (1, 4)
    """

    #: Wishbone B4, classic cycles; an address counts words.
    WISHBONE = "wishbone"
    #: AXI4-Lite; an address counts bytes.
    AXI_LITE = "axi-lite"

    @property
    def address_unit(self) -> int:
        """Bytes that an address counts."""
        return BYTES if self is Bus.WISHBONE else 1


def bus_inputs(bus: Bus, address_bits: int) -> dict[str, int]:
    """The inputs of a bus and their widths.

    Parameters
    ----------
    address_bits : int
        Of the address of a word.
    """
    if bus is Bus.WISHBONE:
        return {
            "wb_cyc": 1,
            "wb_stb": 1,
            "wb_we": 1,
            "wb_adr": address_bits,
            "wb_sel": BYTES,
            "wb_dat_w": DATA_BITS,
        }
    byte_bits = address_bits + (BYTES - 1).bit_length()
    return {
        "s_axil_awaddr": byte_bits,
        "s_axil_awprot": 3,
        "s_axil_awvalid": 1,
        "s_axil_wdata": DATA_BITS,
        "s_axil_wstrb": BYTES,
        "s_axil_wvalid": 1,
        "s_axil_bready": 1,
        "s_axil_araddr": byte_bits,
        "s_axil_arprot": 3,
        "s_axil_arvalid": 1,
        "s_axil_rready": 1,
    }


def bus_outputs(bus: Bus) -> dict[str, int]:
    """The outputs of a bus and their widths."""
    if bus is Bus.WISHBONE:
        return {"wb_dat_r": DATA_BITS, "wb_ack": 1, "wb_err": 1}
    return {
        "s_axil_awready": 1,
        "s_axil_wready": 1,
        "s_axil_bresp": 2,
        "s_axil_bvalid": 1,
        "s_axil_arready": 1,
        "s_axil_rdata": DATA_BITS,
        "s_axil_rresp": 2,
        "s_axil_rvalid": 1,
    }
