"""The driver of commands by registers of a bus, in place of streams of commands and statuses."""

from typing import Any

from cocotb.triggers import RisingEdge
from fabric_port import FabricPort
from packets import Packet

__all__ = ["CommandRegisters"]


class CommandRegisters:
    """Driver that executes commands by registers of a bus: it starts runs, and reads results.

    Attributes
    ----------
    packets : list of Packet
        Commands that have not been executed yet.
    statuses : list of Packet
        A status for each executed command, with the tag of the command.
    """

    def __init__(self, dut: Any, manifest: dict[str, Any]) -> None:
        self.dut, self.port = dut, FabricPort(dut, manifest)
        self.names: list[str] = manifest.get("command_words", [])
        # Number of the lowest bit of the field `error` in the register `status`.
        self.low = int(manifest["bus"]["registers"]["status"]["fields"]["error"]["low"])
        self.packets: list[Packet] = []
        self.statuses: list[Packet] = []

    async def run(self) -> None:
        """Execute all commands that are entered in `packets`, for ever."""
        await self.port.write_register("interrupt_enable", 1)
        while self.names:
            await RisingEdge(self.dut.clk)
            if self.packets:
                words = dict(zip(self.names, self.packets[0].words, strict=True))
                await self.port.start(words)
                await self.port.await_interrupt()
                error = (await self.port.read_register("status")) >> self.low
                status = (words["tag"], error, await self.port.read_register("cycles"))
                self.statuses.append(Packet(0, status))
                self.packets.pop(0)

    async def cycles(self) -> int:
        """Return the cycles of the last run, whose end must have raised the interrupt."""
        assert self.dut.irq.value == 1, "the end of a run must raise the interrupt"
        return int(await self.port.read_register("cycles"))
