"""The cells of ECP5 that make one bit of a word: look-up tables, and multiplexers beside them."""

from collections.abc import Callable, Sequence

__all__ = ["Column", "four", "pair", "pair_or_nothing", "passed"]


class Column:
    """The cells of one bit, as they are added; the same for all bits of a word.

    Parameters
    ----------
    width : int
        Bits of a word.
    """

    def __init__(self, width: int) -> None:
        self._width = width
        self._cells: list[str] = []

    def word(self, index: int) -> str:
        """The bit of an input."""
        return f"words[{index * self._width} + k]" if index else "words[k]"

    def table(self, function: Callable[..., object], *inputs: str) -> str:
        """A look-up table of up to four inputs.

        Examples
        --------
        >>> column = Column(8)
        >>> column.table(lambda a, b: a and b, "a[k]", "b[k]"), column.cells
        ('n[0]', ["LUT4 #(.INIT(16'h8888)) t0 (.A(a[k]), .B(b[k]), .C(1'b0), .D(1'b0), .Z(n[0]));"])
        """
        rows = ([row >> k & 1 for k in range(len(inputs))] for row in range(16))
        value = sum(bool(function(*row)) << k for k, row in enumerate(rows))
        nets = [*inputs, *["1'b0"] * (4 - len(inputs))]
        pins = "".join(f".{pin}({net}), " for pin, net in zip("ABCD", nets, strict=True))
        return self._cell(f"LUT4 #(.INIT(16'h{value:04x})) t", pins)

    def join(self, low: str, high: str, select: str) -> str:
        """A multiplexer of two tables."""
        return self._cell("PFUMX j", f".BLUT({low}), .ALUT({high}), .C0({select}), ")

    def join_pairs(self, low: str, high: str, select: str) -> str:
        """A multiplexer of two such multiplexers."""
        return self._cell("L6MUX21 j", f".D0({low}), .D1({high}), .SD({select}), ")

    def _cell(self, kind: str, pins: str) -> str:
        number = len(self._cells)
        self._cells.append(f"{kind}{number} ({pins}.Z(n[{number}]));")
        return f"n[{number}]"

    @property
    def cells(self) -> list[str]:
        """The instances, in the order in which they were added."""
        return self._cells

    def text(self, assigned: Sequence[str]) -> str:
        """All columns; what is assigned in each comes last."""
        declared = [f"wire [{len(self._cells) - 1}:0] n;"] if self._cells else []
        inside = [*declared, *self._cells, *(f"assign {each};" for each in assigned)]
        return "\n".join(
            [
                "  genvar k;",
                "  generate",
                f"    for (k = 0; k < {self._width}; k = k + 1) begin : column",
                *(f"      {line}" for line in inside),
                "    end",
                "  endgenerate",
            ]
        )


def pair(column: Column, first: int, y: str) -> str:
    """One of two inputs, by a select bit."""
    words = column.word(first), column.word(first + 1)
    return column.table(lambda a, b, y: b if y else a, *words, y)


def pair_or_nothing(column: Column, first: int, y: str, x: str) -> str:
    """One of two inputs, or 0, by two select bits."""
    words = column.word(first), column.word(first + 1)
    return column.table(lambda a, b, y, x: (b if y else a) & x, *words, y, x)


def passed(column: Column, index: int) -> str:
    """An input, by a table: only tables can be joined."""
    return column.table(lambda a: a, column.word(index))


def four(column: Column, first: int, y: str, z: str) -> str:
    """One of four inputs, by two select bits."""
    return column.join(pair(column, first, y), pair(column, first + 2, y), z)
