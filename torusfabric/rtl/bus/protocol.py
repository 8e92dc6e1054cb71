"""Buses: their names, and the ports of each."""

from __future__ import annotations

from ...schedule.model import Choice

__all__ = ["BYTES", "DATA_BITS", "ID_BITS", "MOST_BEAT", "Bus", "burst_inputs", "burst_outputs",
           "bus_inputs", "bus_outputs"]  # fmt: skip

#: Bits, and bytes, of a word of all buses; beats of bursts are as wide as flits.
DATA_BITS = 32
BYTES = DATA_BITS // 8

#: Bits of the number of a master of bursts, and the most bits of a beat.
ID_BITS, MOST_BEAT = 8, 512


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
    #: AXI4 for windows, with bursts, and AXI4-Lite for registers.
    AXI4 = "axi4"

    @property
    def bursts(self) -> bool:
        """Whether windows have a port of their own, with bursts."""
        return self is Bus.AXI4

    @property
    def address_unit(self) -> int:
        """Bytes that an address counts."""
        return BYTES if self is Bus.WISHBONE else 1


def bus_inputs(bus: Bus, address_bits: int) -> dict[str, int]:
    """The inputs of a bus and their widths, without those of bursts.

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


def burst_inputs(address_bits: int, beat_bytes: int) -> dict[str, int]:
    """The inputs of the port for bursts and their widths.

    Parameters
    ----------
    address_bits : int
        Of the address of a word of a bus, not of a beat.
    beat_bytes : int
        Of a beat.
    """
    address = {
        "id": ID_BITS,
        "addr": address_bits + (BYTES - 1).bit_length(),
        "len": 8,
        "size": 3,
        "burst": 2,
        "lock": 1,
        "cache": 4,
        "prot": 3,
        "valid": 1,
    }
    data = {"wdata": 8 * beat_bytes, "wstrb": beat_bytes, "wlast": 1, "wvalid": 1}
    writes = {f"aw{name}": bits for name, bits in address.items()} | data | {"bready": 1}
    reads = {f"ar{name}": bits for name, bits in address.items()} | {"rready": 1}
    return {f"s_axi_{name}": bits for name, bits in (writes | reads).items()}


def burst_outputs(beat_bytes: int) -> dict[str, int]:
    """The outputs of the port for bursts and their widths."""
    writes = {"awready": 1, "wready": 1, "bid": ID_BITS, "bresp": 2, "bvalid": 1}
    reads = {"rdata": 8 * beat_bytes, "rresp": 2, "rlast": 1, "rvalid": 1}
    names = writes | {"arready": 1, "rid": ID_BITS} | reads
    return {f"s_axi_{name}": bits for name, bits in names.items()}
