"""Multiplexer bodies for devices with 6-input LUTs (``TORUSFABRIC_LUT6``).

The user is `module_texts`, which puts them into an ``ifdef``. A 6-input LUT selects one of four
words, or one of two words and the output of the LUT before it.

A *cascade* is a chain of LUTs, in which each one selects its own inputs or the output of the one
before. A *branch* is a cascade for a part of the inputs. The select bits have the encoding that is
defined in ``torusfabric.rtl.multiplexer``: they select exactly one pair of inputs at a time. So a
LUT may decide between two branches by the select bits of one branch alone. Synthesis cannot know
this rule: it needs up to twice as many LUTs for a cascade.
"""

from collections.abc import Sequence

from ..rtl.multiplexer import Multiplexer, branch_sizes, branched_select_bits
from .syntax import range_of

__all__ = ["LUT6", "lut6_body"]

#: Macro that selects these bodies.
LUT6 = "TORUSFABRIC_LUT6"


def lut6_body(module: Multiplexer) -> str | None:
    """Return the Verilog of a multiplexer for devices with 6-input LUTs, after its ports.

    The result is None for fewer than four inputs.

    Parameters
    ----------
    module : Multiplexer
        The multiplexer, with its number of inputs and bits of a word.

    Examples
    --------
    A chain of two LUTs per bit: the first selects among four words, the second adds two.

    >>> print(lut6_body(Multiplexer(6, 8, branched=False)))
      wire [7:0] table_0 = select[2] ? (select[0] ? words[31:24] : words[23:16]) :
        (select[0] ? words[15:8] : words[7:0]);
      wire [7:0] table_1 = select[3] ? (select[0] ? words[47:40] : words[39:32]) :
        table_0;
      assign word = table_1;
    """
    if module.count < 4:
        return None
    width, count = module.width, module.count
    words = [f"words[{(k + 1) * width - 1}:{k * width}]" for k in range(count)]
    if width == 1:
        words = [f"words[{k}]" for k in range(count)]
    bits = [f"select[{k}]" for k in range(module.select_bits)]
    tables = _LutWires(width)
    passed, _ = (_add_branches if module.branched else _add_cascade)(tables, words, bits)
    return "\n".join([*tables.lines, f"  assign word = {passed};"])


class _LutWires:
    """Collector of the Verilog of a multiplexer: each LUT is a wire with all bits of a word."""

    def __init__(self, width: int) -> None:
        self._range = range_of(width)
        self.lines: list[str] = []

    def add_lut(self, condition: str, value: str, other: str) -> str:
        """Add a wire ``condition ? value : other``, one LUT for each bit; return its name."""
        name = f"table_{len(self.lines)}"
        condition = f"({condition})" if "|" in condition else condition
        self.lines.append(f"  wire {self._range}{name} = {condition} ? {value} :\n    {other};")
        return name


def _add_cascade(
    tables: _LutWires, words: Sequence[str], bits: Sequence[str], *, idles: bool = False
) -> tuple[str, list[str]]:
    """Add a chain of LUTs to `tables`, in which each selects its own inputs or the LUT before.

    Parameters
    ----------
    words : sequence of str
        Expressions of the input words.
    bits : sequence of str
        Expressions of the select bits.
    idles : bool
        True if the chain is one of two branches, which may select none of its inputs.

    Returns
    -------
    output : str
        Expression of the selected word; any word if a branch selects none.
    used : list of str
        Select bits of which one is high if the branch selects an input, and none otherwise.
    """
    y, *rest = bits
    first = [rest.pop(0)] if idles or len(words) >= 4 else []
    pairs = [_choose_of_two(y, words[k : k + 2]) for k in range(0, len(words), 2)]
    passed = pairs[0]
    for z, pair in zip(rest, pairs[1:], strict=True):
        passed = tables.add_lut(z, pair, passed)
    return passed, first + rest


def _add_branches(
    tables: _LutWires, words: Sequence[str], bits: Sequence[str], *, idles: bool = False
) -> tuple[str, list[str]]:
    """Add to `tables` a multiplexer of two branches, which select in parallel, and a last input.

    A branch is a chain of LUTs for a part of the inputs. With few inputs there is a single chain.

    Parameters
    ----------
    words : sequence of str
        Expressions of the input words.
    bits : sequence of str
        Expressions of the select bits.
    idles : bool
        True if the multiplexer may select none of its inputs.

    Returns
    -------
    output : str
        Expression of the selected word.
    used : list of str
        Select bits of which one is high if an input is selected, and none otherwise.
    """
    sizes = branch_sizes(len(words))
    if len(sizes) == 1:
        return _add_cascade(tables, words, bits, idles=idles)
    size, used = sizes[0], len(branched_select_bits(sizes[0], 0, idles=True))
    one, first = _add_branches(tables, words[:size], bits[:used], idles=True)
    two, second = _add_branches(tables, words[size:-1], bits[used:-1], idles=True)
    passed = tables.add_lut(" | ".join(second), two, tables.add_lut(bits[-1], words[-1], one))
    return passed, [*first, *second, bits[-1]]


def _choose_of_two(y: str, words: Sequence[str]) -> str:
    return f"({y} ? {words[1]} : {words[0]})" if len(words) == 2 else words[0]
