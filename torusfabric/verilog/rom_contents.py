"""What ROMs hold, as constants in Verilog."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..rtl.netlist import Netlist

__all__ = ["RomContents", "contents_of", "pieces"]

#: Bits of contents in a line of text.
LINE_BITS = 320

#: Lines of contents that are joined at a time. Verilator takes a time that grows with the square of
#: what is in one pair of braces: 4.1 s for 480,000 bits in one, 0.25 s in groups.
JOINED = 32


@dataclass(frozen=True)
class RomContents:
    """What a ROM holds.

    Parameters
    ----------
    width : int
        Bits of a row.
    """

    rows: tuple[int, ...]
    width: int

    @property
    def address_bits(self) -> int:
        """Bits of its address."""
        return max((len(self.rows) - 1).bit_length(), 1)

    @property
    def bits(self) -> int:
        """Bits of all rows."""
        return len(self.rows) * self.width

    def parameters(self, contents: str | None = None) -> str:
        """The parameters of the module in Verilog, with the name of a constant or with all rows."""
        return (
            f".DEPTH({len(self.rows)}), .WIDTH({self.width}), .ADDRESS({self.address_bits}), "
            f".CONTENTS({contents or self.constant})"
        )

    @property
    def constant(self) -> str:
        """All rows as one constant in Verilog, the last row first."""
        return pieces(self.value, self.bits)

    @property
    def value(self) -> int:
        """All rows as one number, the first least significant."""
        return sum(row << k * self.width for k, row in enumerate(self.rows))


def pieces(value: int, bits: int) -> str:
    """A constant with a line for so many bits, for there are tools that do not take any length."""
    digits, some = f"{value:0{-(-bits // 4)}x}", LINE_BITS // 4
    first = len(digits) % some or some
    texts = [digits[:first], *(digits[k : k + some] for k in range(first, len(digits), some))]
    high = bits - LINE_BITS * (len(texts) - 1)
    sizes = [high, *[LINE_BITS] * (len(texts) - 1)]
    every = [f"{size}'h{text.lstrip('0') or '0'}" for size, text in zip(sizes, texts, strict=True)]
    while len(every) > JOINED:
        every = [_joined(every[k : k + JOINED]) for k in range(0, len(every), JOINED)]
    return _joined(every)


def _joined(texts: Sequence[str]) -> str:
    return "{" + ",\n    ".join(texts) + "}"


def contents_of(netlist: Netlist) -> dict[str, RomContents]:
    """The different contents of ROMs, by the name of the first instance with each."""
    found: dict[RomContents, tuple[int, int, str]] = {}
    for array in netlist.arrays:
        if array.which is None:
            continue
        used, first = np.unique(array.which, return_index=True)
        for number, at in zip(used.tolist(), first.tolist(), strict=True):
            index = int(array.index[at])
            known = array.rank, index, array.name.format(index)
            contents = RomContents(array.contents[number], array.width)
            found[contents] = min(known, found.get(contents, known))
    return {name: contents for contents, (*_, name) in sorted(found.items(), key=lambda f: f[1])}
