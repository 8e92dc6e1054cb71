"""The ports of each bus: names, widths, directions and purposes.

`BusFront` adds these ports to a fabric. The bridges and `Windows` have members of the same names.
Each port has a string, its purpose, which the manifest and generated pages show.
"""

from __future__ import annotations

from collections.abc import Mapping

from amaranth.lib.wiring import In, Member, Out

from ...contract.ports import Port, Protocol
from ...contract.registers import BYTES, DATA_BITS
from .options import Bus

__all__ = ["ID_BITS", "INTERRUPT", "MOST_BEAT_BITS", "SLAVE_ERROR", "access_members",
           "burst_ports", "sort_inputs_first", "members_of_ports", "word_ports"]  # fmt: skip

#: Bits of an AXI4 transaction ID, and largest width of a beat in bits.
ID_BITS, MOST_BEAT_BITS = 8, 512

#: The AXI response SLVERR, for an error; OKAY is 0.
SLAVE_ERROR = 2

#: Address bits that select a byte of a bus word.
BYTE_BITS = (BYTES - 1).bit_length()

#: Bits and purpose of some ports, keyed by name.
PortTable = Mapping[str, tuple[int, str]]


#: The interrupt output of a fabric behind any bus.
INTERRUPT = Port(
    "interrupt",
    Protocol.LEVEL,
    "high while an interrupt is pending that is enabled",
    width=1,
    output=True,
)


def word_ports(bus: Bus, address_bits: int) -> dict[str, Port]:
    """Return the ports of a bus for single words of 32 bits: Wishbone or AXI4-Lite.

    Directions are as seen from the fabric, the slave of the bus.

    Parameters
    ----------
    bus : Bus
        The bus. For AXI4 the result is the AXI4-Lite port, which serves the registers.
    address_bits : int
        Bits of an address that counts words of 32 bits.
    """
    if bus is Bus.WISHBONE:
        return _bus_ports(Protocol.WISHBONE, "wb_", {
            "cyc": (1, "high while a bus cycle is under way"),
            "stb": (1, "high while an access is requested, until wb_ack or wb_err"),
            "we": (1, "high for a write, low for a read"),
            "adr": (address_bits, "the address of a word of 32 bits"),
            "sel": (BYTES, "the bytes to write: all; none does nothing"),
            "dat_w": (DATA_BITS, "the word to write"),
        }, {
            "dat_r": (DATA_BITS, "the word read, with wb_ack"),
            "ack": (1, "high when the access is complete"),
            "err": (1, "high when the access is refused"),
        })  # fmt: skip
    given = {
        "awaddr": (address_bits + BYTE_BITS, "the address of the first byte of the word to write"),
        "awprot": (3, "not used"),
        "awvalid": (1, "awaddr is there"),
        "wdata": (DATA_BITS, "the word to write"),
        "wstrb": (BYTES, "the bytes to write: all; none does nothing"),
        "wvalid": (1, "wdata is there"),
        "bready": (1, "bresp is taken"),
        "araddr": (address_bits + BYTE_BITS, "the address of the first byte of the word to read"),
        "arprot": (3, "not used"),
        "arvalid": (1, "araddr is there"),
        "rready": (1, "rdata is taken"),
    }
    gives = {
        "awready": (1, "the slave takes awaddr, together with wdata"),
        "wready": (1, "the slave takes wdata, together with awaddr"),
        "bresp": (2, "0 if the write is complete, 2 (SLVERR) if it is refused"),
        "bvalid": (1, "bresp is there"),
        "arready": (1, "araddr is taken"),
        "rdata": (DATA_BITS, "the word read"),
        "rresp": (2, "0 if the word is read, 2 (SLVERR) if the read is refused"),
        "rvalid": (1, "rdata is there"),
    }
    return _bus_ports(Protocol.AXI_LITE, "s_axil_", given, gives)


def burst_ports(address_bits: int, beat_bytes: int) -> dict[str, Port]:
    """Return the AXI4 ports of the windows, the address ranges for the memories of nodes.

    Directions are as seen from the fabric, the slave of the bus.

    Parameters
    ----------
    address_bits : int
        Bits of an address that counts words of 32 bits. The ports have more bits, because their
        addresses count bytes.
    beat_bytes : int
        Width in bytes of the data ports, which move one beat in a cycle. A *beat* is here one
        transfer of a burst.
    """
    bits, data = address_bits + BYTE_BITS, 8 * beat_bytes
    given = {
        **_burst_inputs("aw", "write", bits),
        "wdata": (data, "the flit of a beat, from its least byte on"),
        "wstrb": (beat_bytes, "the bytes to write"),
        "wlast": (1, "not used: beats are counted"),
        "wvalid": (1, "wdata is there"),
        "bready": (1, "bresp is taken"),
        **_burst_inputs("ar", "read", bits),
        "rready": (1, "rdata is taken"),
    }
    gives = {
        "awready": (1, "the burst is taken"),
        "wready": (1, "wdata is taken"),
        "bid": (ID_BITS, "the identifier of the request that is answered"),
        "bresp": (2, "0 if the burst is written, 2 (SLVERR) if a beat of it is refused"),
        "bvalid": (1, "bresp is there"),
        "arready": (1, "the burst is taken"),
        "rid": (ID_BITS, "the identifier of the request that is answered"),
        "rdata": (data, "the flit read, from its least byte on"),
        "rresp": (2, "0 if the flit is read, 2 (SLVERR) if the read is refused"),
        "rlast": (1, "high with the last beat of a burst"),
        "rvalid": (1, "rdata is there"),
    }
    return _bus_ports(Protocol.AXI4, "s_axi_", given, gives)


def _burst_inputs(channel: str, way: str, address_bits: int) -> dict[str, tuple[int, str]]:
    """Return, by name, (width, purpose) of each input of an AXI4 address channel.

    `channel` is ``aw`` or ``ar``, the beginning of the names. `way` is "write" or "read", a word in
    the purposes. `address_bits` is the width of a byte address.
    """
    signals = {
        "id": (ID_BITS, "the identifier of the request, repeated in the answer"),
        "addr": (address_bits, f"the address of the first byte to {way}"),
        "len": (8, f"beats to {way}, less one"),
        "size": (3, "a beat has 1 << size bytes"),
        "burst": (2, "the address of later beats: it stays (0), counts up (1) or wraps (2)"),
        "lock": (1, "not used"),
        "cache": (4, "not used"),
        "prot": (3, "not used"),
        "valid": (1, "the burst request is valid"),
    }
    return {channel + name: each for name, each in signals.items()}


def _bus_ports(
    protocol: Protocol, prefix: str, given: PortTable, gives: PortTable
) -> dict[str, Port]:
    """Return the declaration (`Port`) of each port of a bus, by port name.

    `given` has the inputs and `gives` the outputs of the fabric. Each maps the name of a port,
    without its `prefix`, to a pair (width, purpose). `protocol` is the timing rule of all these
    ports: the bus.
    """
    return {
        prefix + name: Port("bus", protocol, meaning, width=bits, output=signals is gives)
        for signals in (given, gives)
        for name, (bits, meaning) in signals.items()
    }


def members_of_ports(ports: Mapping[str, Port]) -> dict[str, Member]:
    """Return an Amaranth member with direction and width for each port, by port name.

    Parameters
    ----------
    ports : mapping of str to Port
        Declarations by port name, for example those of `word_ports`.
    """
    return {name: (Out if port.output else In)(port.width) for name, port in ports.items()}


def sort_inputs_first(unsorted: Mapping[str, Member]) -> dict[str, Member]:
    """Return members sorted: all inputs first, then all outputs.

    Parameters
    ----------
    unsorted : mapping of str to Member
        Members by name. Inputs keep their order, and so do outputs.
    """
    return dict(sorted(unsorted.items(), key=lambda named: named[1].flow is Out))


def access_members(address_bits: int) -> dict[str, Member]:
    """Return the signals by which a bridge passes an access of the bus to the module `Registers`.

    An access is a read or a write of one bus word. The bridge translates transfers of the bus into
    accesses, and `Registers` executes them. Directions are as seen from `Registers`.

    The bridge asserts `access`, and holds it and the other inputs of `Registers` until
    `access_done`.

    Parameters
    ----------
    address_bits : int
        Bits of an address that counts bus words of 32 bits.
    """
    return {
        "access": In(1),
        "access_write": In(1),
        "access_address": In(address_bits),
        "access_strobes": In(BYTES),
        "access_data": In(DATA_BITS),
        "access_done": Out(1),
        "access_error": Out(1),
        "access_word": Out(DATA_BITS),
    }
