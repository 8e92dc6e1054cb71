"""Sums for ECP5: the tables of the carry chain make the last step of the choice.

A CCU2C has two bits of a carry chain, each with a table of four inputs: a bit of the word, and
three, b, c and d, of which what is added follows. Where a bit does not pass a carry on, the carry
is what the four rows with c = d = 0 say; that is the bit of the word if nothing is added in these.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ...rtl.chosen_sum import ChosenSum
from .column import Column, four, pair, pair_or_nothing, passed

__all__ = ["sum_body"]

#: Bits of a word from which on a carry chain is worth its ends.
LEAST = 4


def _either(b: int, c: int, d: int) -> int:
    return b if c else d


class _Step(NamedTuple):
    """The last step of a choice.

    Parameters
    ----------
    b, d : str
        Of each bit.
    c : str
        Of each slice, with the numbers of its select bits in braces.
    added : function of (b, c, d) -> int
        What is added; nothing where c and d are 0.
    """

    b: str
    c: str
    d: str
    added: Callable[[int, int, int], int] = _either


def sum_body(meant: ChosenSum) -> str | None:
    """The module without its ports; None where its usual form is as good.

    Examples
    --------
    >>> body = sum_body(ChosenSum(4, 16, idles=True))
    >>> body.count("LUT4"), body.count("CCU2C")
    (1, 1)
    """
    size, bits, count = meant.slices[0][1], meant.select_bits, len(meant.slices)
    # Verilog allows no index where there is a single bit.
    select = "select" if bits * count == 1 else "select[{}]"
    column = Column(meant.width)
    step = (_or_nothing if meant.idles else _of_words)(
        column, meant.count, [select.format(f"k / {size} * {bits} + {bit}") for bit in range(bits)]
    )
    if step is None or meant.width < LEAST:
        return None
    of_slices = [
        step.c.format(*(select.format(k * bits + bit) for bit in range(bits))) for k in range(count)
    ]
    assigned = [f"b[k] = {step.b}", f"c[k] = of_slice[k / {size}]", f"d[k] = {step.d}"]
    head = f"  wire [{len(of_slices) - 1}:0] of_slice = {{{', '.join(reversed(of_slices))}}};\n"
    return head + _chain(meant.width, step, column.text(assigned))


def _or_nothing(column: Column, count: int, select: Sequence[str]) -> _Step | None:
    """One of some words, or nothing, which is the last that can be chosen."""
    y, *others = select
    if count == 2:
        return _Step(column.word(0), "{0}", "1'b1", lambda b, c, d: b & (1 - c))
    if count == 3:
        second = column.table(lambda a, y: a & y, column.word(1), y)
        return _Step(column.word(0), "~({0} | {1})", second)
    first = pair_or_nothing(column, 0, y, others[0])
    if count == 4:
        return _Step(column.word(2), "{2} & ~{0}", first)
    if count == 5:
        other = pair_or_nothing(column, 2, others[1], others[2])
        return _Step(first, "1'b1", other, lambda b, c, d: b | d)
    if count > 8:
        return None
    first = column.join(first, pair(column, 2, y), others[1])
    if count == 6:
        return _Step(column.word(4), "{3} & ~{0}", first)
    other = pair(column, 4, others[2])
    if count == 7:
        return _Step(other, "{4}", first)
    return _Step(column.join(other, passed(column, 6), others[4]), "{4} | {5}", first)


def _of_words(column: Column, count: int, select: Sequence[str]) -> _Step | None:
    """One of some words."""
    y, *others = select
    if count == 2:
        return _Step(column.word(1), "{0}", column.word(0))
    if count == 3:
        return _Step(column.word(2), "{1}", pair(column, 0, y))
    if count == 4:
        return _Step(pair(column, 2, y), "{2}", pair(column, 0, y))
    if count == 5:
        first = column.join(pair(column, 0, y), pair(column, 2, others[1]), others[2])
        return _Step(column.word(4), "{4}", first)
    if count == 6:
        return _Step(pair(column, 4, y), "{3}", four(column, 0, y, others[1]))
    return None


def _chain(width: int, step: _Step, columns: str) -> str:
    """The carry chain, behind the columns; a bit more of an odd number adds nothing."""
    pairs = (width + 1) // 2
    nothing = f"  assign {{b[{width}], c[{width}], d[{width}]}} = 3'b0;\n" * (width % 2)
    pins = ", ".join(
        f".{pin.upper()}{half}({pin}[2 * k + {half}])" for half in (0, 1) for pin in "abcd"
    )
    table = f"16'h{_table(step):04x}"
    return f"""\
  wire [{2 * pairs - 1}:0] a = word;
  wire [{2 * pairs - 1}:0] b, c, d, s;
  wire [{pairs}:0] carry;
  assign carry[0] = 1'b0;
  assign total = s[{width - 1}:0];
{nothing}{columns}
  generate
    for (k = 0; k < {pairs}; k = k + 1) begin : chain
      CCU2C #(.INIT0({table}), .INIT1({table}), .INJECT1_0("NO"), .INJECT1_1("NO")) add (
        .CIN(carry[k]), {pins},
        .S0(s[2 * k]), .S1(s[2 * k + 1]), .COUT(carry[k + 1]));
    end
  endgenerate"""


def _table(step: _Step) -> int:
    """The contents of the tables of the chain, by d, c, b, a."""
    value = 0
    for row in range(16):
        a, b, c, d = (row >> k & 1 for k in range(4))
        value |= (a ^ (step.added(b, c, d) if c or d else 0)) << row
    return value
