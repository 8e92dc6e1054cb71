"""Driver of a fabric behind AXI4 in a cocotb test bench.

Windows are accessed by bursts of random sizes, with random pauses in all channels. Registers are
accessed through AXI4-Lite.
"""

import logging
import random
from collections.abc import Iterator
from typing import Any

import bus_port
from cocotbext.axi import AxiBurstType, AxiBus, AxiMaster, AxiResp
from collectives import Words, flit_of_beat, pack_beats

__all__ = ["FabricPort"]

#: Largest distance, in flits, between two flits that are accessed by one transfer.
LONGEST_GAP = 8


class FabricPort(bus_port.FabricPort):
    """Driver of a fabric behind AXI4: it loads and reads by bursts, and runs by registers."""

    def __init__(self, dut: Any, manifest: dict[str, Any]) -> None:
        super().__init__(dut, manifest)
        self.cycles_of_a_word = LONGEST_GAP
        self.random = random.Random(self.stalls.generator.random())
        self.bytes = self.facts["beat_width"] // 8
        self.master_of_windows = AxiMaster(AxiBus.from_prefix(dut, "s_axi"), dut.clk, dut.rst)
        reads, writes = self.master_of_windows.read_if, self.master_of_windows.write_if
        for side in (reads, writes):
            side.log.setLevel(logging.WARNING)
        for channel in (reads.ar_channel, reads.r_channel,
                        writes.aw_channel, writes.w_channel, writes.b_channel):  # fmt: skip
            channel.set_pause_generator(self.stalls.pause_generator())

    async def load(self, sent: list[Words]) -> None:
        """Write the message of each node; flits at close addresses share a transfer."""
        flits = {
            self._byte_address("send", node, part, beat): word
            for node, words in enumerate(sent)
            for (part, beat), word in pack_beats(words, self.manifest).items()
        }
        writes = []
        for start, count in self._plan_transfers(flits):
            addresses = range(start, start + count * self.bytes, self.bytes)
            data = b"".join(
                self._word_or_random(flits, at).to_bytes(self.bytes, "little") for at in addresses
            )
            for first, last in self._cut_at_random(start, len(data)):
                part = data[first - start : last - start]
                writes.append(
                    self.master_of_windows.init_write(first, part, size=self._random_size())
                )
        for write in writes:
            await write.wait()
            assert write.data.resp == AxiResp.OKAY, f"a write must not be refused: {write.data}"

    async def read(self, places: list[tuple[int, int, int]]) -> list[int]:
        """Read received flits, each given as (node, origin, number of the flit)."""
        addresses = [
            self._byte_address("receive", node, origin, flit // self.beat)
            for node, origin, flit in places
        ]
        reads = [
            (
                start,
                self.master_of_windows.init_read(
                    start, count * self.bytes, size=self._random_size()
                ),
            )
            for start, count in self._plan_transfers({*addresses})
        ]
        found: dict[int, int] = {}
        for start, read in reads:
            await read.wait()
            assert read.data.resp == AxiResp.OKAY, f"the read of {start:#x} must not be refused"
            for k in range(0, len(read.data.data), self.bytes):
                flit = read.data.data[k : k + self.bytes]
                found[start + k] = int.from_bytes(flit, "little")
        # Two of them again, by bursts of the types WRAP and FIXED.
        for at in self.random.sample(addresses, min(len(addresses), 2)):
            await self._check_wrap_and_fixed(at, found)
        return [
            flit_of_beat(found[at], flit, self.manifest)
            for at, (_, _, flit) in zip(addresses, places, strict=True)
        ]

    async def _check_wrap_and_fixed(self, at: int, found: dict[int, int]) -> None:
        """Read two flits by a WRAP burst, and one flit twice by a FIXED burst; check their values.

        `at` is the byte address of a flit. `found` has the flits that were read before, by address.
        """
        other = at ^ self.bytes
        for kind, second in ((AxiBurstType.WRAP, other), (AxiBurstType.FIXED, at)):
            answer = await self.master_of_windows.read(at, 2 * self.bytes, burst=kind)
            for k, where in enumerate((at, second)):
                flit = answer.data[k * self.bytes : (k + 1) * self.bytes]
                if where in found:
                    assert int.from_bytes(flit, "little") == found[where], f"{where:#x} by {kind!r}"

    def _word_or_random(self, flits: dict[int, int], at: int) -> int:
        """Return the word for an address; a random word in a gap between flits.

        `at` is the byte address, and `flits` has the words by byte address.
        """
        return (
            flits[at]
            if at in flits
            else self.random.getrandbits(self.manifest["width"] * self.beat)
        )

    def _plan_transfers(self, addresses: Any) -> Iterator[tuple[int, int]]:
        """Yield transfers, each (first byte address, number of flits), that cover all addresses."""
        stride = self.facts["windows"]["send"]["stride"]
        pieces: list[list[int]] = []
        for at in sorted(addresses):
            if pieces and self._can_extend(pieces[-1][1], at, stride):
                pieces[-1][1] = at
            else:
                pieces.append([at, at])
        for first, last in pieces:
            yield first, (last - first) // self.bytes + 1

    def _can_extend(self, before: int, at: int, stride: int) -> bool:
        """Return True if a transfer may be extended to a further flit, at address `at`.

        It may if the flit is next to the last flit of the transfer, or in the same node and close
        to it. `before` is the byte address of this last flit. Windows have `stride` bytes for each
        node.
        """
        near = at - before <= LONGEST_GAP * self.bytes and at // stride == before // stride
        return near or at == before + self.bytes

    def _cut_at_random(self, start: int, count: int) -> Iterator[tuple[int, int]]:
        """Cut a transfer in two at a random byte; return the ranges (first address, end) of bytes.

        `start` is the first byte address of the transfer, and `count` the number of its bytes.
        """
        cut = start + self.random.randrange(count)
        return iter([(start, cut), (cut, start + count)] if cut > start else [(start, cut + count)])

    def _random_size(self) -> int:
        """Return a random beat size, as log2 of its bytes: mostly the full width of the bus."""
        full: int = self.bytes.bit_length() - 1
        return full if self.random.random() < 2 / 3 else self.random.randint(0, full)
