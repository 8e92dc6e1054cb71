"""Multiplexer and sum bodies made of ECP5 cells (``TORUSFABRIC_ECP5``).

The user is `module_texts`, which puts them into an ``ifdef``; the plain bodies suit devices with
LUTs alone. The select bits are the same in both forms, so that nothing outside the module changes.

PFUMX joins two 4-input LUTs by a 2:1 multiplexer, and L6MUX21 joins two such pairs. A choice
between four inputs then takes two LUTs, with no wire between them. Yosys does not find this form:
it treats the choice as any function of six inputs, which takes four LUTs.

Why an out-port ends in a LUT: a register next to a LUT takes the output of the LUT directly, but
that of a wide multiplexer over a wire.

In a sum, the LUTs of the carry chain make the last step of the choice. A CCU2C has two bits of a
carry chain. Each has a LUT with four inputs: ``a``, a bit of the word, and ``b``, ``c``, ``d``,
which determine the added bit. The LUT holds a XOR the added bit. Where this XOR is 0, the carry is
not propagated, and the carry out is the LUT's value in the row with c = d = 0 and the same a and b.
So nothing may be added in the rows with c = d = 0. These rows then hold ``a``, the right carry.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ..rtl.chosen_sum import ChosenSum
from ..rtl.multiplexer import Multiplexer, branch_bits, branches

__all__ = ["ECP5", "multiplexer_body", "sum_body"]

#: Macro that selects these bodies.
ECP5 = "TORUSFABRIC_ECP5"

#: Fewest bits of a word for which a carry chain pays, in spite of the cells at its ends.
LEAST = 4


class Column:
    """The cells of one bit of a word; each method adds a cell and returns its output net.

    All bits have the same cells: the text is a generate loop over bits.

    Parameters
    ----------
    width : int
        Bits of a word.

    Attributes
    ----------
    cells : list of str
        Instances in the order in which they were added.
    """

    def __init__(self, width: int) -> None:
        self._width = width
        self.cells: list[str] = []

    def word(self, index: int) -> str:
        """Return bit k of an input word."""
        return f"words[{index * self._width} + k]" if index else "words[k]"

    def table(self, function: Callable[..., object], *inputs: str) -> str:
        """Add a LUT with up to four inputs.

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
        """Add a PFUMX, a multiplexer of two LUTs."""
        return self._cell("PFUMX j", f".BLUT({low}), .ALUT({high}), .C0({select}), ")

    def join_pairs(self, low: str, high: str, select: str) -> str:
        """Add an L6MUX21, a multiplexer of two PFUMX outputs."""
        return self._cell("L6MUX21 j", f".D0({low}), .D1({high}), .SD({select}), ")

    def _cell(self, kind: str, pins: str) -> str:
        number = len(self.cells)
        self.cells.append(f"{kind}{number} ({pins}.Z(n[{number}]));")
        return f"n[{number}]"

    def text(self, assigned: Sequence[str]) -> str:
        """Return the generate loop over all bits; the assignments stand after the cells."""
        declared = [f"wire [{len(self.cells) - 1}:0] n;"] if self.cells else []
        inside = [*declared, *self.cells, *(f"assign {each};" for each in assigned)]
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
    """Add a choice between two inputs, by one select bit."""
    words = column.word(first), column.word(first + 1)
    return column.table(lambda a, b, y: b if y else a, *words, y)


def pair_or_nothing(column: Column, first: int, y: str, x: str) -> str:
    """Add a choice between two inputs and 0, by two select bits."""
    words = column.word(first), column.word(first + 1)
    return column.table(lambda a, b, y, x: (b if y else a) & x, *words, y, x)


def passed(column: Column, index: int) -> str:
    """Add a LUT that passes an input. Why: a PFUMX joins LUTs only."""
    return column.table(lambda a: a, column.word(index))


def four(column: Column, first: int, y: str, z: str) -> str:
    """Add a choice between four inputs, by two select bits."""
    return column.join(pair(column, first, y), pair(column, first + 2, y), z)


def multiplexer_body(multiplexer: Multiplexer) -> str | None:
    """Return the body of a multiplexer after its ports; None where the plain body is as good.

    Examples
    --------
    >>> body = multiplexer_body(Multiplexer(7, 16, branched=True))
    >>> body.count("LUT4"), body.count("PFUMX")
    (4, 1)
    """
    column, count = Column(multiplexer.width), multiplexer.count
    if not multiplexer.branched:
        f = _joined(column, count) if count in (3, 4, 6) else _cascade(column, count)
    elif count == 6:
        f = _cascade(column, count)
    elif 7 <= count <= 9:
        f = _branches(column, count)
    else:
        return None
    return column.text([f"word[k] = {f}"])


def _joined(column: Column, count: int) -> str:
    """Add a choice between three, four or six inputs, one LUT deep."""
    y, x, z, *further = (f"select[{k}]" for k in range(count))
    if count == 3:
        return column.join(pair(column, 0, y), passed(column, 2), x)
    if count == 4:
        return four(column, 0, y, z)
    last = column.join(passed(column, 4), passed(column, 5), y)
    return column.join_pairs(four(column, 0, y, z), last, further[0])


def _cascade(column: Column, count: int) -> str:
    """Add a cascade of five inputs or more; its select bits are y, x, z1, .."""
    y, x, z, *further = (f"select[{k}]" for k in range(count))
    # With x = 0 the first stage passes y, which the stage that is selected uses to choose its word.
    first = [column.word(0), column.word(1), y, x]
    low = column.table(lambda a, b, y, x: (b if y else a) if x else y, *first)
    f = column.join(low, pair(column, 2, y), z)
    for k, stage in zip(range(4, count, 2), further, strict=False):
        words = [column.word(index) for index in range(k, min(k + 2, count))]
        f = column.table(_stage, f, stage, *words)
    return f


def _stage(f: int, z: int, even: int, odd: int | None = None) -> int:
    """Return the function of a later stage of a cascade."""
    if not z:
        return f
    return even if odd is None or not f else odd


def _branches(column: Column, count: int) -> str:
    """Add a choice of one of seven to nine inputs: two branches and a last input.

    The first branch has four inputs, the other two to four.
    """
    select = [f"select[{k}]" for k in range(len(branch_bits(count, 0)))]
    first, other = branches(count)
    a = _branch(column, 0, first, select[:3])
    b = _branch(column, first, other, select[3:-1])
    words = [a, b, column.word(count - 1)]
    return column.table(lambda a, b, s, z: s if z else a | b, *words, select[-1])


def _branch(column: Column, first: int, count: int, select: Sequence[str]) -> str:
    """Add a choice of one of two to four inputs or 0, by the select bits y, x and z1."""
    y, x, *others = select
    low = pair_or_nothing(column, first, y, x)
    if count == 2:
        return low
    high = passed(column, first + 2) if count == 3 else pair(column, first + 2, y)
    return column.join(low, high, *others)


def _either(b: int, c: int, d: int) -> int:
    return b if c else d


class _Step(NamedTuple):
    """The last step of a choice, which the LUTs of the carry chain make.

    Parameters
    ----------
    b, d : str
        Nets for the inputs of the same name, one of each bit.
    c : str
        Net for input c, one of each slice, with the numbers of its select bits in braces.
    added : function of (b, c, d) -> int
        The bit to add. It must be 0 where c and d are 0; see the module's docstring.
    """

    b: str
    c: str
    d: str
    added: Callable[[int, int, int], int] = _either


def sum_body(meant: ChosenSum) -> str | None:
    """Return the body of a sum after its ports; None where the plain body is as good.

    Examples
    --------
    >>> body = sum_body(ChosenSum(4, 16, idles=True))
    >>> body.count("LUT4"), body.count("CCU2C")
    (1, 1)
    """
    size, bits, count = meant.slices[0][1], meant.select_bits, len(meant.slices)
    # Verilog has no index on a net of one bit.
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
    """Return the last step of a choice of which the last option is 0; None if no form pays."""
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
    """Return the last step of a choice between words; None if no form pays."""
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
    """Return the carry chain after the columns. An odd width is padded with a bit that adds 0."""
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
    """Return the contents of the LUTs of the chain, with d, c, b, a as bits 3 to 0 of the row."""
    value = 0
    for row in range(16):
        a, b, c, d = (row >> k & 1 for k in range(4))
        value |= (a ^ (step.added(b, c, d) if c or d else 0)) << row
    return value
