"""What the ROM of a loader or unloader is asked for: rows of each form, without those of others.

The rows of a form are as many as it has packets and chunks, each to a power of two, and begin at a
multiple of their number: the bits of a packet and a chunk stand below those of the form.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from amaranth.hdl import Cat, Const, Value

from ..memories import choose, fitting

__all__ = ["RowKey"]


@dataclass(frozen=True)
class RowKey:
    """Where the rows of each form begin.

    Parameters
    ----------
    packet_bits, chunk_bits : tuple of int
        Of each form.

    Examples
    --------
    Of three forms, the first has two rows, the others have 64 each.

    >>> key = RowKey((0, 0, 6), (1, 6, 0))
    >>> key.starts, key.rows, key.bits
    ((128, 0, 64), 130, 8)
    """

    packet_bits: tuple[int, ...]
    chunk_bits: tuple[int, ...]

    @property
    def below(self) -> tuple[int, ...]:
        """Bits of a row within those of its form."""
        return tuple(sum(bits) for bits in zip(self.packet_bits, self.chunk_bits, strict=True))

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """The first row of each form; the largest come first, so that all are aligned."""
        starts, start = [0] * len(self.below), 0
        for form in sorted(range(len(starts)), key=lambda form: -self.below[form]):
            starts[form], start = start, start + (1 << self.below[form])
        return tuple(starts)

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return sum(1 << bits for bits in self.below)

    @property
    def bits(self) -> int:
        """Bits of the number of a row."""
        return (self.rows - 1).bit_length()

    def value(self, chunk: Value, packet: Value, form: Value) -> Value:
        """The number of a row."""
        found = []
        for start, packets, chunks in zip(
            self.starts, self.packet_bits, self.chunk_bits, strict=True
        ):
            above = self.bits - packets - chunks
            parts = [fitting(chunk, chunks), fitting(packet, packets)]
            found.append(Cat(*parts, Const(start >> packets + chunks, above)))
        return found[0] if len(found) == 1 else choose(found, form)

    def text(self, chunk: str, packet: str, form: str) -> str:
        """The same in SystemVerilog."""
        text = ""
        forms = zip(self.starts, self.packet_bits, self.chunk_bits, strict=True)
        for number, (start, packets, chunks) in enumerate(forms):
            found = [f"{self.bits}'d{start}"]
            found += [f"{self.bits}'({packets}'({packet})) << {chunks}"] * (packets > 0)
            found += [f"{self.bits}'({chunks}'({chunk}))"] * (chunks > 0)
            here = "(" + " | ".join(f"({each})" for each in found) + ")"
            text = f"{text}{form} == {number} ? {here} : " if number < len(self.starts) - 1 else (
                text + here
            )  # fmt: skip
        return f"({text})"
