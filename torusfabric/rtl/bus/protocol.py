"""Buses: their names and ports, and bridges, which make accesses of what is spoken on a bus."""

from __future__ import annotations

from collections.abc import Mapping

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib.wiring import In, Member, Out

from ...toolchain.values import Choice
from ..netlist import Leaf

__all__ = ["BRIDGES", "BYTES", "DATA_BITS", "ID_BITS", "MOST_BEAT", "SLAVE_ERROR", "Bus",
           "access_members", "burst_members", "bus_members", "inputs_first"]  # fmt: skip

#: Bits, and bytes, of a word of all buses; beats of bursts are as wide as flits.
DATA_BITS = 32
BYTES = DATA_BITS // 8

#: Bits of the number of a master of bursts, and the most bits of a beat.
ID_BITS, MOST_BEAT = 8, 512

#: The response that tells of an error: SLVERR. Without one it is 0, OKAY.
SLAVE_ERROR = 2


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


def bus_members(bus: Bus, address_bits: int) -> dict[str, Member]:
    """The ports of a bus, as the fabric has them, without those of bursts.

    Parameters
    ----------
    address_bits : int
        Of the address of a word.
    """
    if bus is Bus.WISHBONE:
        return _members("wb_", {
            "cyc": 1, "stb": 1, "we": 1, "adr": address_bits, "sel": BYTES, "dat_w": DATA_BITS,
        }, {"dat_r": DATA_BITS, "ack": 1, "err": 1})  # fmt: skip
    address = {"addr": address_bits + (BYTES - 1).bit_length(), "prot": 3, "valid": 1}
    return _members("s_axil_", {
        **_channel("aw", address), "wdata": DATA_BITS, "wstrb": BYTES, "wvalid": 1, "bready": 1,
        **_channel("ar", address), "rready": 1,
    }, {
        "awready": 1, "wready": 1, "bresp": 2, "bvalid": 1,
        "arready": 1, "rdata": DATA_BITS, "rresp": 2, "rvalid": 1,
    })  # fmt: skip


def burst_members(address_bits: int, beat_bytes: int) -> dict[str, Member]:
    """The port for bursts, as the fabric has it.

    Parameters
    ----------
    address_bits : int
        Of the address of a word of a bus, not of a beat.
    """
    address = {
        "id": ID_BITS, "addr": address_bits + (BYTES - 1).bit_length(), "len": 8, "size": 3,
        "burst": 2, "lock": 1, "cache": 4, "prot": 3, "valid": 1,
    }  # fmt: skip
    data = 8 * beat_bytes
    return _members("s_axi_", {
        **_channel("aw", address), "wdata": data, "wstrb": beat_bytes, "wlast": 1, "wvalid": 1,
        "bready": 1, **_channel("ar", address), "rready": 1,
    }, {
        "awready": 1, "wready": 1, "bid": ID_BITS, "bresp": 2, "bvalid": 1,
        "arready": 1, "rid": ID_BITS, "rdata": data, "rresp": 2, "rlast": 1, "rvalid": 1,
    })  # fmt: skip


def _channel(name: str, signals: dict[str, int]) -> dict[str, int]:
    """What the address channel of writes, or of reads, has."""
    return {name + signal: bits for signal, bits in signals.items()}


def _members(prefix: str, given: dict[str, int], gives: dict[str, int]) -> dict[str, Member]:
    """Inputs and outputs of so many bits, whose names begin alike."""
    return {prefix + name: In(bits) for name, bits in given.items()} | {
        prefix + name: Out(bits) for name, bits in gives.items()
    }


def inputs_first(members: Mapping[str, Member]) -> dict[str, Member]:
    """The same with all inputs in front."""
    return dict(sorted(members.items(), key=lambda named: named[1].flow is Out))


def access_members(address_bits: int) -> dict[str, Member]:
    """What registers are given of an access, and what they answer.

    Parameters
    ----------
    address_bits : int
        Of the address of a bus word.
    """
    return _members("access", {
        "": 1, "_write": 1, "_address": address_bits, "_strobes": BYTES, "_data": DATA_BITS,
    }, {"_done": 1, "_error": 1, "_word": DATA_BITS})  # fmt: skip


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
        super().__init__(inputs_first(bus_members(bus, address_bits) | answers))


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
