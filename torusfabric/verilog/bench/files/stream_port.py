"""Streams: packets are sent and received, and every port rests at random."""

from collections import deque
from typing import Any

from cocotb.triggers import RisingEdge
from packets import Packet
from stalls import Stalls

__all__ = ["Sink", "Source"]


class Stream:
    """The signals of a stream.

    Parameters
    ----------
    ports : dict
        Those of the manifest.
    prefix : str
        Of the names of its signals.
    """

    def __init__(self, dut: Any, ports: dict[str, Any], prefix: str, stalls: Stalls) -> None:
        self.dut, self.ports, self.prefix, self.stalls = dut, ports, prefix, stalls
        self.clock = getattr(dut, ports[f"{prefix}_tvalid"]["clock"])

    def has(self, name: str) -> bool:
        """Whether there is a signal of this name."""
        return f"{self.prefix}_{name}" in self.ports

    def signal(self, name: str) -> Any:
        """A signal."""
        return getattr(self.dut, f"{self.prefix}_{name}")

    async def edge(self) -> None:
        """Wait for a rising edge of the clock of the stream."""
        await RisingEdge(self.clock)


class Source(Stream):
    """Sends packets.

    Attributes
    ----------
    packets : deque of Packet
        What is still to be sent.
    """

    def __init__(self, dut: Any, ports: dict[str, Any], prefix: str, stalls: Stalls) -> None:
        super().__init__(dut, ports, prefix, stalls)
        self.packets: deque[Packet] = deque()

    async def run(self) -> None:
        """Send what there is to send, for ever."""
        while True:
            await self.rest()
            packet = self.packets[0]
            for k, word in enumerate(packet.words):
                await self.send(word, last=k == len(packet.words) - 1, dest=packet.number)
            self.packets.popleft()

    async def rest(self) -> None:
        """Rest at least until there is a packet."""
        while not self.packets or self.stalls.due():
            self.signal("tvalid").value = 0
            names = [name for name in ("tdata", "tlast", "tdest") if self.has(name)]
            self.stalls.scramble(*(f"{self.prefix}_{name}" for name in names))
            await self.edge()

    async def send(self, word: int, *, last: bool, dest: int) -> None:
        """Offer a word until it is taken."""
        await self.rest()
        self.signal("tdata").value = word
        self.signal("tlast").value = int(last)
        if self.has("tdest"):
            self.signal("tdest").value = dest
        self.signal("tvalid").value = 1
        while True:
            await self.edge()
            if self.signal("tready").value == 1:
                return


class Sink(Stream):
    """Receives packets.

    Attributes
    ----------
    packets : list of Packet
        What has been received.
    """

    def __init__(self, dut: Any, ports: dict[str, Any], prefix: str, stalls: Stalls) -> None:
        super().__init__(dut, ports, prefix, stalls)
        self.packets: list[Packet] = []

    async def run(self) -> None:
        """Receive what comes, for ever; a word that waits must stay as it is."""
        words: list[int] = []
        waiting = None
        while True:
            takes = not self.stalls.due()
            self.signal("tready").value = int(takes)
            await self.edge()
            shown = self.shown()
            assert waiting in (None, shown), f"{self.prefix}: {waiting} must wait, not {shown}"
            waiting = None if takes else shown
            if not takes or shown is None:
                continue
            word, last, number = shown
            words.append(word)
            if last:
                self.packets.append(Packet(number, tuple(words)))
                words = []

    def shown(self) -> tuple[int, int, int] | None:
        """The word that is offered, whether it is the last, and its origin; None without one."""
        if self.signal("tvalid").value == 0:
            return None
        number = int(self.signal("tid").value) if self.has("tid") else 0
        return int(self.signal("tdata").value), int(self.signal("tlast").value), number
