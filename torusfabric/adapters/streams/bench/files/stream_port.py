"""Drivers of streams in a cocotb test bench, `Source` and `Sink`, which stall at random."""

from collections import deque
from collections.abc import Sequence
from typing import Any

from cocotb.triggers import RisingEdge
from packets import Packet
from stalls import Stalls

__all__ = ["Sink", "Source"]


class Stream:
    """The signals of one stream of the simulated fabric.

    Parameters
    ----------
    ports : dict
        Entry ``ports`` of the manifest.
    prefix : str
        Beginning of the names of the signals.
    beat : int
        Flits of a word.
    """

    def __init__(
        self, dut: Any, ports: dict[str, Any], prefix: str, stalls: Stalls, beat: int = 1
    ) -> None:
        self.dut, self.ports, self.prefix, self.stalls = dut, ports, prefix, stalls
        self.clock = getattr(dut, ports[f"{prefix}_tvalid"]["clock"])
        # Flits of a word, and bits of a flit.
        self.beat, self.bits = beat, ports[f"{prefix}_tdata"]["width"] // beat

    def has_signal(self, name: str) -> bool:
        """Return True if the stream has the signal `name`, such as ``tlast``."""
        return f"{self.prefix}_{name}" in self.ports

    def signal(self, name: str) -> Any:
        """Return the signal `name` of the stream, such as ``tlast``."""
        return getattr(self.dut, f"{self.prefix}_{name}")

    async def wait_for_edge(self) -> None:
        """Wait for a rising edge of the clock of the stream."""
        await RisingEdge(self.clock)


class Source(Stream):
    """Driver that sends packets into a stream.

    Attributes
    ----------
    packets : deque of Packet
        Packets that have not been sent yet.
    """

    def __init__(
        self, dut: Any, ports: dict[str, Any], prefix: str, stalls: Stalls, beat: int = 1
    ) -> None:
        super().__init__(dut, ports, prefix, stalls, beat)
        self.packets: deque[Packet] = deque()

    async def run(self) -> None:
        """Send all packets that are entered in `packets`, for ever."""
        while True:
            await self.pause_or_wait()
            packet = self.packets[0]
            for k in range(0, len(packet.words), self.beat):
                last = k + self.beat >= len(packet.words)
                await self.send(packet.words[k : k + self.beat], last=last, dest=packet.number)
            self.packets.popleft()

    async def pause_or_wait(self) -> None:
        """Offer no word during a stall or without a packet; set the other signals at random."""
        while not self.packets or self.stalls.needs_pause():
            self.signal("tvalid").value = 0
            names = [name for name in ("tdata", "tkeep", "tlast", "tdest") if self.has_signal(name)]
            self.stalls.randomize_inputs(*(f"{self.prefix}_{name}" for name in names))
            await self.wait_for_edge()

    async def send(self, flits: Sequence[int], *, last: bool, dest: int) -> None:
        """Offer the flits of one word until it is accepted."""
        await self.pause_or_wait()
        self.signal("tdata").value = sum(flit << self.bits * k for k, flit in enumerate(flits))
        if self.has_signal("tkeep"):
            self.signal("tkeep").value = (1 << len(flits) * self.bits // 8) - 1
        self.signal("tlast").value = int(last)
        if self.has_signal("tdest"):
            self.signal("tdest").value = dest
        self.signal("tvalid").value = 1
        while True:
            await self.wait_for_edge()
            if self.signal("tready").value == 1:
                return


class Sink(Stream):
    """Driver that receives packets from a stream.

    Attributes
    ----------
    packets : list of Packet
        Packets that have been received.
    """

    def __init__(
        self, dut: Any, ports: dict[str, Any], prefix: str, stalls: Stalls, beat: int = 1
    ) -> None:
        super().__init__(dut, ports, prefix, stalls, beat)
        self.packets: list[Packet] = []

    async def run(self) -> None:
        """Receive packets, for ever, and check that a waiting word does not change."""
        words: list[int] = []
        waiting = None
        while True:
            takes = not self.stalls.needs_pause()
            self.signal("tready").value = int(takes)
            await self.wait_for_edge()
            shown = self.current_word()
            assert waiting in (None, shown), f"{self.prefix}: {waiting} must wait, not {shown}"
            waiting = None if takes else shown
            if not takes or shown is None:
                continue
            word, last, number, keep = shown
            words += self.valid_flits(word, keep, last=bool(last))
            if last:
                self.packets.append(Packet(number, tuple(words)))
                words = []

    def valid_flits(self, word: int, keep: int, *, last: bool) -> list[int]:
        """Return the flits of a word whose bytes `tkeep` marks as valid.

        `keep` is the value of `tkeep`, with a bit for each byte. `last` is True for the last word
        of a packet; in all other words every flit must be valid.
        """
        count = keep.bit_length() * 8 // self.bits if self.has_signal("tkeep") else 1
        assert last or count == self.beat, f"{self.prefix}: only the last word may have free bytes"
        return [word >> self.bits * k & (1 << self.bits) - 1 for k in range(count)]

    def current_word(self) -> tuple[int, int, int, int] | None:
        """Return the offered word with its `tlast`, `tid` and `tkeep`; None while there is none."""
        if self.signal("tvalid").value == 0:
            return None
        number = int(self.signal("tid").value) if self.has_signal("tid") else 0
        word, last, keep = self.signal("tdata").value, int(self.signal("tlast").value), 0
        if self.has_signal("tkeep"):
            keep = int(self.signal("tkeep").value)
            assert keep, f"{self.prefix}: a word must have bytes"
            word = word[8 * keep.bit_length() - 1 : 0]  # all other bytes may be unknown
        return int(word), last, number, keep
