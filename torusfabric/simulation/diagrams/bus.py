"""What is shown of a fabric behind a bus."""

from abc import ABC, abstractmethod

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

    async def _passed(self, line: str, *inputs: str) -> None:
        """Wait until a line is high, pass an edge, and set inputs to 0."""
        await self._stage.until(lambda: bool(self._stage.get(line)), limit=MOST_CYCLES)
        await self._stage.edges()
        self._stage.set(**dict.fromkeys(inputs, 0))


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
        inputs |= {"wb_cyc": 1, "wb_stb": 1}
        self._stage.set(**inputs)
        await self._passed("wb_ack", *inputs)
        await self._stage.edges()


def _lines(prefix: str, names: str) -> tuple[str, ...]:
    return tuple(f"{prefix}_{name}" for name in names.split())


class AxiLite(Master):
    """Five channels, all of which are ready at once."""

    writing = _lines(
        "s_axil", "awvalid awready awaddr wvalid wready wdata wstrb bvalid bready bresp"
    )
    reading = _lines("s_axil", "arvalid arready araddr rvalid rready rdata rresp")

    async def write(self, address: int, word: int) -> None:
        """Write a word; address and data are taken together."""
        self._set("s_axil", awvalid=1, awaddr=address, bready=1, wvalid=1, wdata=word, wstrb=0xF)
        await self._passed("s_axil_awready", *_lines("s_axil", "awvalid awaddr wvalid wdata wstrb"))
        await self._finish("s_axil", "b")

    async def read(self, address: int) -> None:
        """Read a word."""
        await self._read("s_axil", address)

    async def _read(self, prefix: str, address: int, **others: int) -> None:
        self._set(prefix, arvalid=1, araddr=address, rready=1, **others)
        await self._passed(f"{prefix}_arready", *_lines(prefix, "arvalid araddr"))
        await self._finish(prefix, "r")

    def _set(self, prefix: str, **inputs: int) -> None:
        self._stage.set(**{f"{prefix}_{name}": value for name, value in inputs.items()})

    async def _finish(self, prefix: str, channel: str) -> None:
        await self._passed(f"{prefix}_{channel}valid", f"{prefix}_{channel}ready")
        await self._stage.edges()


class Axi4(AxiLite):
    """Registers as there; windows by bursts of one beat, of a bus word."""

    starting = AxiLite.writing
    writing = _lines(
        "s_axi", "awvalid awready awaddr awsize wvalid wready wdata wstrb bvalid bready bresp"
    )
    reading = _lines("s_axi", "arvalid arready araddr arsize rvalid rready rdata rresp rlast")

    async def write(self, address: int, word: int) -> None:
        """Write a word, where it is in its flit."""
        if not self._in_window(address):
            return await super().write(address, word)
        first = address % self._registers.flit_bytes
        self._set("s_axi", awvalid=1, awaddr=address, awsize=2, awburst=1, bready=1)
        self._set("s_axi", wvalid=1, wdata=word << 8 * first, wstrb=0xF << first, wlast=1)
        await self._passed("s_axi_awready", *_lines("s_axi", "awvalid awaddr"))
        await self._passed("s_axi_wready", *_lines("s_axi", "wvalid wdata wstrb wlast"))
        return await self._finish("s_axi", "b")

    async def read(self, address: int) -> None:
        """Read a word."""
        if not self._in_window(address):
            return await super().read(address)
        return await self._read("s_axi", address, arsize=2, arburst=1)

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
        base = _address(fabric, registers, "send", shown.source, shown.sent[0])
        for part in range(registers.parts):
            word = shown.words[0] >> DATA_BITS * part & (1 << DATA_BITS) - 1
            await bus.write(base + 4 * part, word)
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
        base = _address(fabric, registers, "receive", shown.reader, shown.received[0])
        for part in range(registers.parts):
            await bus.read(base + 4 * part)
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


def _address(
    fabric: Fabric, registers: RegisterMap, name: str, node: int, place: tuple[int, int]
) -> int:
    """The address of a flit in a window."""
    window = next(window for window in registers.windows if window.name == name)
    part, beat = place
    number = part * fabric.layout.flits + beat
    return window.offset + node * window.stride + number * window.flit_bytes
