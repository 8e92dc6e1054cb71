"""What is shown of a fabric behind a bus."""

from abc import ABC, abstractmethod
from collections.abc import Iterator

from ...rtl.bus import DATA_BITS, Bus, RegisterMap
from ...rtl.fabric import Fabric
from ..engines.base import PATIENCE
from .host import CHOICES
from .stage import Scene, Sketch, Stage, Watched, sample

__all__ = ["bus_scene"]

#: The most cycles of an access.
MOST_CYCLES = 64


class Master(ABC):
    """What speaks the protocol of a bus."""

    #: The lines of writes, and of reads; of writes of registers, if these are others.
    writing: tuple[str, ...]
    reading: tuple[str, ...]
    starting: tuple[str, ...] = ()

    def __init__(self, stage: Stage, registers: RegisterMap) -> None:
        self._stage, self._registers = stage, registers

    @abstractmethod
    async def write(self, address: int, word: int) -> None:
        """Write a word; the address counts bytes."""

    @abstractmethod
    async def read(self, address: int) -> None:
        """Read a word."""


class Wishbone(Master):
    """Classic cycles."""

    writing = ("wb_cyc", "wb_stb", "wb_we", "wb_adr", "wb_sel", "wb_dat_w", "wb_ack", "wb_err")
    reading = ("wb_cyc", "wb_stb", "wb_we", "wb_adr", "wb_ack", "wb_err", "wb_dat_r")

    async def write(self, address: int, word: int) -> None:
        """Write a word."""
        await self._access(wb_adr=address // 4, wb_we=1, wb_sel=0xF, wb_dat_w=word)

    async def read(self, address: int) -> None:
        """Read a word."""
        await self._access(wb_adr=address // 4, wb_we=0, wb_sel=0xF, wb_dat_w=0)

    async def _access(self, **inputs: int) -> None:
        stage = self._stage
        stage.set(wb_cyc=1, wb_stb=1, **inputs)
        await stage.until(lambda: bool(stage.get("wb_ack")), limit=MOST_CYCLES)
        await stage.edges()
        stage.set(wb_cyc=0, wb_stb=0, **dict.fromkeys(inputs, 0))
        await stage.edges()


class AxiLite(Master):
    """Five channels, all of which are ready at once."""

    writing = tuple(
        f"s_axil_{name}"
        for name in ("awvalid", "awready", "awaddr", "wvalid", "wready", "wdata", "wstrb",
                     "bvalid", "bready", "bresp")
    )  # fmt: skip
    reading = tuple(
        f"s_axil_{name}"
        for name in ("arvalid", "arready", "araddr", "rvalid", "rready", "rdata", "rresp")
    )

    async def write(self, address: int, word: int) -> None:
        """Write a word."""
        stage = self._stage
        stage.set(s_axil_awvalid=1, s_axil_awaddr=address, s_axil_bready=1)
        stage.set(s_axil_wvalid=1, s_axil_wdata=word, s_axil_wstrb=0xF)
        # Address and data are taken together.
        await stage.until(lambda: bool(stage.get("s_axil_awready")), limit=MOST_CYCLES)
        await stage.edges()
        stage.set(s_axil_awvalid=0, s_axil_awaddr=0)
        stage.set(s_axil_wvalid=0, s_axil_wdata=0, s_axil_wstrb=0)
        await self._finish("s_axil_bvalid", "s_axil_bready")

    async def read(self, address: int) -> None:
        """Read a word."""
        stage = self._stage
        stage.set(s_axil_arvalid=1, s_axil_araddr=address, s_axil_rready=1)
        await stage.until(lambda: bool(stage.get("s_axil_arready")), limit=MOST_CYCLES)
        await stage.edges()
        stage.set(s_axil_arvalid=0, s_axil_araddr=0)
        await self._finish("s_axil_rvalid", "s_axil_rready")

    async def _finish(self, valid: str, ready: str) -> None:
        stage = self._stage
        await stage.until(lambda: bool(stage.get(valid)), limit=MOST_CYCLES)
        await stage.edges()
        stage.set(**{ready: 0})
        await stage.edges()


class Axi4(AxiLite):
    """Registers as there; windows by bursts of one beat, of a bus word."""

    starting = AxiLite.writing
    writing = tuple(
        f"s_axi_{name}"
        for name in ("awvalid", "awready", "awaddr", "awsize", "wvalid", "wready", "wdata",
                     "wstrb", "bvalid", "bready", "bresp")
    )  # fmt: skip
    reading = tuple(
        f"s_axi_{name}"
        for name in ("arvalid", "arready", "araddr", "arsize", "rvalid", "rready", "rdata",
                     "rresp", "rlast")
    )  # fmt: skip

    async def write(self, address: int, word: int) -> None:
        """Write a word, where it is in its flit."""
        if not self._in_window(address):
            return await super().write(address, word)
        stage, first = self._stage, address % self._registers.flit_bytes
        stage.set(s_axi_awvalid=1, s_axi_awaddr=address, s_axi_awsize=2, s_axi_awburst=1)
        stage.set(s_axi_wvalid=1, s_axi_wdata=word << 8 * first, s_axi_wstrb=0xF << first)
        stage.set(s_axi_wlast=1, s_axi_bready=1)
        await stage.until(lambda: bool(stage.get("s_axi_awready")), limit=MOST_CYCLES)
        await stage.edges()
        stage.set(s_axi_awvalid=0, s_axi_awaddr=0)
        await stage.until(lambda: bool(stage.get("s_axi_wready")), limit=MOST_CYCLES)
        await stage.edges()
        stage.set(s_axi_wvalid=0, s_axi_wdata=0, s_axi_wstrb=0, s_axi_wlast=0)
        return await self._finish("s_axi_bvalid", "s_axi_bready")

    async def read(self, address: int) -> None:
        """Read a word."""
        if not self._in_window(address):
            return await super().read(address)
        stage = self._stage
        stage.set(s_axi_arvalid=1, s_axi_araddr=address, s_axi_arsize=2, s_axi_arburst=1)
        stage.set(s_axi_rready=1)
        await stage.until(lambda: bool(stage.get("s_axi_arready")), limit=MOST_CYCLES)
        await stage.edges()
        stage.set(s_axi_arvalid=0, s_axi_araddr=0)
        return await self._finish("s_axi_rvalid", "s_axi_rready")

    def _in_window(self, address: int) -> bool:
        return address >= self._registers.windows[0].offset


MASTERS: dict[Bus, type[Master]] = {
    Bus.WISHBONE: Wishbone,
    Bus.AXI_LITE: AxiLite,
    Bus.AXI4: Axi4,
}


def bus_scene(fabric: Fabric) -> Scene:
    """A flit is written, a run, a register and a flit are read."""
    assert fabric.bus is not None
    assert fabric.register_map is not None
    master, registers, shown = MASTERS[fabric.bus], fabric.register_map, sample(fabric)

    async def play(stage: Stage) -> None:
        bus = master(stage, registers)
        offset = {register.name: register.offset for register in registers.registers}
        stage.begin("write")
        await stage.edges()
        for address, word in _sent_words(fabric, registers):
            await bus.write(address, word)
        stage.end("write")
        stage.begin("run")
        await stage.edges()
        await bus.write(offset["interrupt_enable"], 1)
        for name in CHOICES:
            if name in offset:
                await bus.write(offset[name], shown.job.inputs.get(name, 0))
        await bus.write(offset["start"], 1)
        limit = fabric.predicted_cycles + PATIENCE
        await stage.until(lambda: bool(stage.get("irq")), limit=limit)
        await stage.edges()
        await bus.write(offset["interrupt_pending"], 1)
        stage.end("run")
        stage.begin("read")
        await stage.edges()
        await bus.read(offset["cycles"])
        for address in _received_addresses(fabric, registers):
            await bus.read(address)
        stage.end("read")

    return Scene(play, _sketches(fabric, master))


def _sketches(fabric: Fabric, master: type[Master]) -> list[Sketch]:
    shown = sample(fabric)
    writing = tuple(map(Watched, master.writing))
    starting = tuple(map(Watched, master.starting or master.writing))
    write = f"A flit of what node {shown.source} sends is written through the window `send`."
    run = (
        "`interrupt_enable`, then what is chosen for the run, then `start`. The interrupt at its "
        "end is cleared by a 1 in `interrupt_pending`."
    )
    read = (
        f"The register `cycles`, then a flit of what node {shown.reader} has received, through the "
        "window `receive`."
    )
    return [
        Sketch("write", "Writing a flit", write, writing),
        Sketch("run", "A run", run, (*starting, Watched("irq"))),
        Sketch("read", "Reading a register and a flit", read, tuple(map(Watched, master.reading))),
    ]


def _sent_words(fabric: Fabric, registers: RegisterMap) -> Iterator[tuple[int, int]]:
    """The addresses of a flit that is sent, and its words."""
    shown = sample(fabric)
    base = _address(fabric, registers, "send", shown.source, shown.sent[0])
    for part in range(registers.parts):
        yield base + 4 * part, shown.words[0] >> DATA_BITS * part & (1 << DATA_BITS) - 1


def _received_addresses(fabric: Fabric, registers: RegisterMap) -> Iterator[int]:
    """The addresses of a flit that is received."""
    shown = sample(fabric)
    base = _address(fabric, registers, "receive", shown.reader, shown.received[0])
    return (base + 4 * part for part in range(registers.parts))


def _address(
    fabric: Fabric, registers: RegisterMap, name: str, node: int, place: tuple[int, int]
) -> int:
    """The address of a flit in a window."""
    window = next(window for window in registers.windows if window.name == name)
    part, beat = place
    number = part * fabric.layout.flits + beat
    return window.offset + node * window.stride + number * window.flit_bytes
