"""Multiplexer and sum bodies made of ECP5 cells (``TORUSFABRIC_ECP5``).

The user is `module_texts`, which puts them into an ``ifdef``; the plain bodies suit devices with
LUTs alone. The select bits are the same in both forms, so that nothing outside the module changes.

PFUMX joins two 4-input LUTs by a 2:1 multiplexer, and L6MUX21 joins two such pairs. A choice
between four inputs then takes two LUTs, with no wire between them. Yosys does not find this form:
it treats the choice as any function of six inputs, which takes four LUTs.

Why an out-port ends in a LUT: a register next to a LUT takes the output of the LUT directly, but
that of a wide multiplexer over a wire.

A sum (`ChosenSum`) adds one of several operands to a word: ``total = word + chosen``. The choice
takes several levels of LUTs. The last level needs no LUTs of its own, because the LUTs of the carry
chain make this step::

    operands    --> LUTs of the first levels --> b, d --+
    select bits --> c ----------------------------------+--> CCU2C: LUT and carry --> total
    word        --> a ----------------------------------+

A CCU2C has two bits of a carry chain, each with a LUT of the inputs ``a``, ``b``, ``c`` and ``d``.
The *added* bit is a function of b, c and d, for example ``c ? b : d``. The LUT holds ``a XOR
added``. Where this XOR is 0, the chain does not propagate the carry: its carry out is then the
value of the LUT in the row with c = d = 0 and the same a and b. If the added bit is 0 in all rows
with c = d = 0, these rows hold ``a``, which is the right carry. `_LastChoice` has to obey this
rule.

In the functions, `column` collects the cells of one bit, and `first` is the index of the first
input word. `y`, `x` and `z` are expressions of select bits.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ..rtl.chosen_sum import ChosenSum
from ..rtl.multiplexer import Multiplexer, branch_sizes, branched_select_bits

__all__ = ["ECP5", "multiplexer_body", "sum_body"]

#: Macro that selects these bodies.
ECP5 = "TORUSFABRIC_ECP5"

#: Fewest bits of a word for which a carry chain pays, in spite of the cells at its ends.
LEAST_CHAIN_BITS = 4


class BitCells:
    """Collector of the cells that a multiplexer or sum needs for one bit of its words.

    Cells are LUTs and other primitives of ECP5. Each ``add_..`` method adds a cell and returns the
    net at its output. All bits have the same cells, so that the Verilog is a generate loop over the
    bits, with loop variable ``k``.

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

    def input_bit(self, index: int) -> str:
        """Return the expression of bit ``k`` of input word `index`."""
        return f"words[{index * self._width} + k]" if index else "words[k]"

    def add_lut(self, function: Callable[..., object], *inputs: str) -> str:
        """Add a LUT with up to four inputs, and return its output net.

        Parameters
        ----------
        function : function of bits -> truth value
            Output for each combination of the inputs.
        *inputs : str
            Nets at the inputs.

        Examples
        --------
        The AND of bit k of two words is the LUT with the contents 8888.

        >>> column = BitCells(8)
        >>> column.add_lut(lambda a, b: a and b, "a[k]", "b[k]"), column.cells
        ('n[0]', ["LUT4 #(.INIT(16'h8888)) t0 (.A(a[k]), .B(b[k]), .C(1'b0), .D(1'b0), .Z(n[0]));"])
        """
        rows = ([row >> k & 1 for k in range(len(inputs))] for row in range(16))
        value = sum(bool(function(*row)) << k for k, row in enumerate(rows))
        nets = [*inputs, *["1'b0"] * (4 - len(inputs))]
        pins = "".join(f".{pin}({net}), " for pin, net in zip("ABCD", nets, strict=True))
        return self._add_cell(f"LUT4 #(.INIT(16'h{value:04x})) t", pins)

    def add_pfumx(self, low: str, high: str, select: str) -> str:
        """Add a PFUMX, a multiplexer of two LUT outputs: ``select ? high : low``."""
        return self._add_cell("PFUMX j", f".BLUT({low}), .ALUT({high}), .C0({select}), ")

    def add_l6mux21(self, low: str, high: str, select: str) -> str:
        """Add an L6MUX21, a multiplexer of two PFUMX outputs: ``select ? high : low``."""
        return self._add_cell("L6MUX21 j", f".D0({low}), .D1({high}), .SD({select}), ")

    def _add_cell(self, kind: str, pins: str) -> str:
        number = len(self.cells)
        self.cells.append(f"{kind}{number} ({pins}.Z(n[{number}]));")
        return f"n[{number}]"

    def loop_text(self, assigned: Sequence[str]) -> str:
        """Return the generate loop over all bits: the cells, then the assignments `assigned`."""
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


def choose_of_two(column: BitCells, first: int, y: str) -> str:
    """Add a LUT ``y ? b : a`` for the input words `first` (a) and `first` + 1 (b).

    The LUT is added to `column`, the cells of one bit. Return the net at its output.
    """
    words = column.input_bit(first), column.input_bit(first + 1)
    return column.add_lut(lambda a, b, y: b if y else a, *words, y)


def choose_of_two_or_zero(column: BitCells, first: int, y: str, x: str) -> str:
    """Add a LUT ``x ? (y ? b : a) : 0`` for the input words `first` (a) and `first` + 1 (b).

    The LUT is added to `column`, the cells of one bit. Return the net at its output.
    """
    words = column.input_bit(first), column.input_bit(first + 1)
    return column.add_lut(lambda a, b, y, x: (b if y else a) & x, *words, y, x)


def pass_input(column: BitCells, index: int) -> str:
    """Add a LUT that passes input word `index`, and return the net at its output.

    The LUT is added to `column`, the cells of one bit. Why: a PFUMX joins LUTs only.
    """
    return column.add_lut(lambda a: a, column.input_bit(index))


def choose_of_four(column: BitCells, first: int, y: str, z: str) -> str:
    """Add cells that choose one of four input words from `first` on; return the output net.

    Select bit ``z`` chooses the pair of words, ``y`` the word of the pair. `column` collects the
    cells of one bit.
    """
    return column.add_pfumx(choose_of_two(column, first, y), choose_of_two(column, first + 2, y), z)


def multiplexer_body(multiplexer: Multiplexer) -> str | None:
    """Return the Verilog of a multiplexer made of ECP5 cells, after its ports.

    The result is None if Verilog without cells is as good.

    Examples
    --------
    Seven inputs take four LUTs per bit, two of which a PFUMX joins.

    >>> body = multiplexer_body(Multiplexer(7, 16, branched=True))
    >>> body.count("LUT4"), body.count("PFUMX")
    (4, 1)
    """
    column, count = BitCells(multiplexer.width), multiplexer.count
    if not multiplexer.branched:
        f = (
            _choose_in_one_level(column, count)
            if count in (3, 4, 6)
            else _add_cascade(column, count)
        )
    elif count == 6:
        f = _add_cascade(column, count)
    elif 7 <= count <= 9:
        f = _add_branches(column, count)
    else:
        return None
    return column.loop_text([f"word[k] = {f}"])


def _choose_in_one_level(column: BitCells, count: int) -> str:
    """Add a multiplexer that is one LUT deep, of three, four or six inputs; return its output.

    The LUTs work in parallel, and wide multiplexers of the ECP5 join them. `column` collects the
    cells of one bit. The output is the name of a net, and `count` the number of inputs.
    """
    y, x, z, *further = (f"select[{k}]" for k in range(count))
    if count == 3:
        return column.add_pfumx(choose_of_two(column, 0, y), pass_input(column, 2), x)
    if count == 4:
        return choose_of_four(column, 0, y, z)
    last = column.add_pfumx(pass_input(column, 4), pass_input(column, 5), y)
    return column.add_l6mux21(choose_of_four(column, 0, y, z), last, further[0])


def _add_cascade(column: BitCells, count: int) -> str:
    """Add the cells of a chain of stages with `count` inputs, five or more; return the output net.

    The first two stages are a PFUMX of two LUTs, each further stage is a LUT. The select bits are
    ``y, x, z, ..``, as in `torusfabric.rtl.multiplexer`. `column` collects the cells of one bit.
    """
    y, x, z, *further = (f"select[{k}]" for k in range(count))
    # With x = 0 the first stage passes y, which the stage that is selected uses to choose its word.
    first = [column.input_bit(0), column.input_bit(1), y, x]
    low = column.add_lut(lambda a, b, y, x: (b if y else a) if x else y, *first)
    f = column.add_pfumx(low, choose_of_two(column, 2, y), z)
    for k, stage in zip(range(4, count, 2), further, strict=False):
        words = [column.input_bit(index) for index in range(k, min(k + 2, count))]
        f = column.add_lut(_cascade_stage, f, stage, *words)
    return f


def _cascade_stage(f: int, z: int, even: int, odd: int | None = None) -> int:
    """Return the output bit of a LUT in a chain: one of its own inputs, or the LUT before.

    ``f`` is the output of the LUT before, `even` and `odd` are inputs of this LUT, and ``z`` is its
    select bit: 1 to choose an input of its own. The bit is ``z ? (f ? odd : even) : f``: if this
    LUT chooses, the chain before it passes a select bit as ``f``. Without `odd` it is ``z ? even :
    f``.
    """
    if not z:
        return f
    return even if odd is None or not f else odd


def _add_branches(column: BitCells, count: int) -> str:
    """Add the cells of a multiplexer of two branches and a last input; return the output net.

    Both branches select in parallel. `count`, the number of inputs, is seven to nine. The first
    branch has four inputs, the second one two to four. `column` collects the cells of one bit.
    """
    select = [f"select[{k}]" for k in range(len(branched_select_bits(count, 0)))]
    first, other = branch_sizes(count)
    a = _add_branch(column, 0, first, select[:3])
    b = _add_branch(column, first, other, select[3:-1])
    words = [a, b, column.input_bit(count - 1)]
    return column.add_lut(lambda a, b, s, z: s if z else a | b, *words, select[-1])


def _add_branch(column: BitCells, first: int, count: int, select: Sequence[str]) -> str:
    """Add the cells that choose one of some inputs, or 0; return the output net.

    The inputs are `count` words from `first` on; `count` is two to four. The select bits are ``y``,
    ``x`` and, from three inputs on, ``z``. `column` collects the cells of one bit.
    """
    y, x, *others = select
    low = choose_of_two_or_zero(column, first, y, x)
    if count == 2:
        return low
    high = pass_input(column, first + 2) if count == 3 else choose_of_two(column, first + 2, y)
    return column.add_pfumx(low, high, *others)


def _select_bit(b: int, c: int, d: int) -> int:
    return b if c else d


class _LastChoice(NamedTuple):
    """The last step by which a sum chooses its operand, made by the LUTs of the carry chain.

    A sum adds one of several operands to a word. The LUT of each bit of the chain has an input for
    the word, and inputs b, c and d for this choice.

    Parameters
    ----------
    b, d : str
        Expressions at the inputs b and d of the LUT, for bit ``k`` of the words.
    c : str
        Expression at input c, the same for all bits of a slice: one of the adjacent bit ranges into
        which a word is cut, each with select bits of its own. ``{0}`` stands for the first select
        bit of the slice, ``{1}`` for the second one, and so on.
    added : function of (b, c, d) -> int
        The bit to add. It must be 0 where c and d are 0; see the module's docstring.
    """

    b: str
    c: str
    d: str
    added: Callable[[int, int, int], int] = _select_bit


def sum_body(meant: ChosenSum) -> str | None:
    """Return the Verilog of the sum `meant`, made of ECP5 cells, after its ports.

    The result is None if Verilog without cells is as good.

    Examples
    --------
    A choice among three operands and 0 takes one LUT per bit besides the carry chain.

    >>> body = sum_body(ChosenSum(4, 16, idles=True))
    >>> body.count("LUT4"), body.count("CCU2C")
    (1, 1)
    """
    size, bits, count = meant.slice_bounds[0][1], meant.select_bits, len(meant.slice_bounds)
    # Verilog has no index on a net of one bit.
    select = "select" if bits * count == 1 else "select[{}]"
    column = BitCells(meant.width)
    step = (_choose_word_or_zero if meant.idles else _choose_word)(
        column, meant.count, [select.format(f"k / {size} * {bits} + {bit}") for bit in range(bits)]
    )
    if step is None or meant.width < LEAST_CHAIN_BITS:
        return None
    of_slices = [
        step.c.format(*(select.format(k * bits + bit) for bit in range(bits))) for k in range(count)
    ]
    assigned = [f"b[k] = {step.b}", f"c[k] = of_slice[k / {size}]", f"d[k] = {step.d}"]
    head = f"  wire [{len(of_slices) - 1}:0] of_slice = {{{', '.join(reversed(of_slices))}}};\n"
    return head + _carry_chain(meant.width, step, column.loop_text(assigned))


def _choose_word_or_zero(column: BitCells, count: int, select: Sequence[str]) -> _LastChoice | None:
    """Add the LUTs that choose among some operands and 0, except the last step; return this step.

    The LUTs of the carry chain make the last step.

    Parameters
    ----------
    column : BitCells
        Collector of the cells, to which the first levels are added.
    count : int
        Number of options: ``count - 1`` operands that are inputs, and 0.
    select : sequence of str
        Expressions of the select bits.

    Returns
    -------
    _LastChoice or None
        None if no form takes fewer LUTs than the plain one.
    """
    y, *others = select
    if count == 2:
        return _LastChoice(column.input_bit(0), "{0}", "1'b1", lambda b, c, d: b & (1 - c))
    if count == 3:
        second = column.add_lut(lambda a, y: a & y, column.input_bit(1), y)
        return _LastChoice(column.input_bit(0), "~({0} | {1})", second)
    first = choose_of_two_or_zero(column, 0, y, others[0])
    if count == 4:
        return _LastChoice(column.input_bit(2), "{2} & ~{0}", first)
    if count == 5:
        other = choose_of_two_or_zero(column, 2, others[1], others[2])
        return _LastChoice(first, "1'b1", other, lambda b, c, d: b | d)
    if count > 8:
        return None
    first = column.add_pfumx(first, choose_of_two(column, 2, y), others[1])
    if count == 6:
        return _LastChoice(column.input_bit(4), "{3} & ~{0}", first)
    other = choose_of_two(column, 4, others[2])
    if count == 7:
        return _LastChoice(other, "{4}", first)
    return _LastChoice(
        column.add_pfumx(other, pass_input(column, 6), others[4]), "{4} | {5}", first
    )


def _choose_word(column: BitCells, count: int, select: Sequence[str]) -> _LastChoice | None:
    """Add the LUTs that choose among `count` operands, except the last step; return this step.

    The LUTs of the carry chain make the last step. `column` collects the cells of one bit. `select`
    has the expressions of the select bits. The result is None if no form takes fewer LUTs than the
    plain one.
    """
    y, *others = select
    if count == 2:
        return _LastChoice(column.input_bit(1), "{0}", column.input_bit(0))
    if count == 3:
        return _LastChoice(column.input_bit(2), "{1}", choose_of_two(column, 0, y))
    if count == 4:
        return _LastChoice(choose_of_two(column, 2, y), "{2}", choose_of_two(column, 0, y))
    if count == 5:
        first = column.add_pfumx(
            choose_of_two(column, 0, y), choose_of_two(column, 2, others[1]), others[2]
        )
        return _LastChoice(column.input_bit(4), "{4}", first)
    if count == 6:
        return _LastChoice(
            choose_of_two(column, 4, y), "{3}", choose_of_four(column, 0, y, others[1])
        )
    return None


def _carry_chain(width: int, step: _LastChoice, columns: str) -> str:
    """Return the Verilog of a sum: first `columns`, the cells in front, and then the carry chain.

    `step` is the last step by which the operand is chosen, which the LUTs of the chain make. A
    CCU2C adds two bits, so an odd `width` is padded with a bit that adds 0.
    """
    pairs = (width + 1) // 2
    nothing = f"  assign {{b[{width}], c[{width}], d[{width}]}} = 3'b0;\n" * (width % 2)
    pins = ", ".join(
        f".{pin.upper()}{half}({pin}[2 * k + {half}])" for half in (0, 1) for pin in "abcd"
    )
    table = f"16'h{_chain_lut_contents(step):04x}"
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


def _chain_lut_contents(step: _LastChoice) -> int:
    """Return the contents of the LUT at each bit of a sum's carry chain, as a number of 16 bits.

    Bit k of the contents is the output of the LUT if its inputs d, c, b, a are bits 3 to 0 of k.
    `step` is the last choice among operands, which the LUT makes before it adds the operand.
    """
    value = 0
    for row in range(16):
        a, b, c, d = (row >> k & 1 for k in range(4))
        value |= (a ^ (step.added(b, c, d) if c or d else 0)) << row
    return value
