"""Multiplexer bodies for silicon (``TORUSFABRIC_ASIC``): gates instead of LUTs.

The user is `module_texts`, which puts them into an ``ifdef``. On silicon, an AND gate for each
input and an OR over all inputs is the smallest multiplexer. The select bits of a slice are decoded
once, into one enable bit for each input; all bits of the slice share them.

The select bits have the encoding that is defined in ``torusfabric.rtl.multiplexer``.
"""

from collections.abc import Sequence

from ..rtl.multiplexer import Multiplexer, Selector
from .syntax import range_of

__all__ = ["ASIC", "one_hot_body"]

#: Macro that selects these bodies.
ASIC = "TORUSFABRIC_ASIC"


def one_hot_body(module: Multiplexer | Selector) -> str | None:
    """Return the Verilog of a multiplexer for silicon, after its ports.

    The result is None for fewer than three inputs.

    Parameters
    ----------
    module : Multiplexer or Selector
        The multiplexer, with its number of inputs and bits of a word. A selector has a register of
        the select bits, which all bits of the word share.

    Examples
    --------
    The last of three words has a select bit of its own.

    >>> print(one_hot_body(Multiplexer(3, 8, branched=False)))
      wire [2:0] enable = {select[1], select[0], ~select[0] & ~select[1]};
      assign word = ({8{enable[0]}} & words[7:0])
        | ({8{enable[1]}} & words[15:8])
        | ({8{enable[2]}} & words[23:16]);
    """
    lines, select = [], "select"
    if isinstance(module, Selector):
        module, select = module.multiplexer, "held"
        lines = [
            f"  reg {range_of(module.select_bits)}held;",
            "  always @(posedge clk) held <= select;",
        ]
    if module.count < 3:
        return None
    width, codes = module.width, module.select_codes
    bits = [f"{select}[{k}]" for k in range(module.select_bits)]
    enables = ", ".join(_enable_condition(code, codes, bits) for code in reversed(codes))
    passed = [
        f"({{{width}{{enable[{k}]}}}} & words[{(k + 1) * width - 1}:{k * width}])"
        for k in range(module.count)
    ]
    word = "\n    | ".join(passed)
    lines += [f"  wire {range_of(module.count)}enable = {{{enables}}};", f"  assign word = {word};"]
    return "\n".join(lines)


def _enable_condition(
    code: Sequence[int], codes: Sequence[Sequence[int]], bits: Sequence[str]
) -> str:
    """Return a condition on the select bits that holds for one code, and for no other of `codes`.

    The condition reads few select bits. `bits` has the expression of each.
    """
    ones = [k for k, bit in enumerate(code) if bit]
    others = [other for other in codes if other != code and all(other[k] for k in ones)]
    zeros: set[int] = set()
    while others:  # a bit that excludes most of them
        free = [k for k, bit in enumerate(code) if not bit]
        best = max(free, key=lambda k: sum(other[k] for other in others))
        zeros.add(best)
        others = [other for other in others if not other[best]]
    return " & ".join([bits[k] for k in ones] + [f"~{bits[k]}" for k in sorted(zeros)])
