"""Comparison of operator hardware with the function of an operator that states no formula.

Whole runs treat an operator as an unknown function of two words (see `sums`). For an operator
without a formula, such as a floating-point sum, two claims tie this function to the model:

- *Pipeline*, for all words: the result depends on the words of the cycle `latency` cycles earlier,
  and on no other state. Every gate has a *stage*, the number of registers behind the words.
- *Values*, for many pairs of words: the result is that of the operator's function. In every other
  cycle all words are unknown.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import partial
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..contract.claims import Claim
from ..rtl.operator_unit import make_pair_module
from .gate_program import GateProgram
from .report import make_refutation
from .symbols import UNKNOWN

if TYPE_CHECKING:
    from ..collective import Operator, Words
    from ..rtl import Fabric
    from ..rtl.operator_unit import OperatorUnit
    from .gates import Bit, GateModule, GateText

__all__ = ["compared_operators", "operator_assumptions", "operator_claims"]

#: Pairs of words for which an operator is compared with its function.
PAIRS = 1 << 15

#: Pairs that are executed at once.
PAIRS_AT_ONCE = 1 << 12


def compared_operators(fabric: Fabric) -> list[Operator]:
    """Return the operators of a fabric that state no formula."""
    unit = fabric.operator_unit
    return [operator for operator in unit.operators if operator.proof is None] if unit else []


def operator_assumptions(fabric: Fabric) -> Iterator[str]:
    """Yield an assumption for each operator that is compared on some pairs of words only."""
    for operator in compared_operators(fabric):
        yield (
            f"Operator {operator} combines all pairs of words as its function does, and the "
            f"function is commutative; {PAIRS} pairs are compared."
        )


def operator_claims(fabric: Fabric, text: GateText) -> Iterator[Claim]:
    """Yield the claims about operators without a formula: pipeline and values.

    `text` is the Verilog as gates.
    """
    unit, compared = fabric.operator_unit, compared_operators(fabric)
    name = make_pair_module(unit, fabric.width).name if unit else ""
    module = text.modules.get(fabric.prefix + name)
    if unit is None or module is None or not compared:
        return
    yield Claim(
        f"{name} pipeline",
        "comparison of stages",
        f"the result depends on the words {unit.latency} cycles earlier, and on no others",
        partial(_check_stages, module, unit.latency),
    )
    for operator in compared:
        yield Claim(
            f"{name} {operator}",
            "comparison of pairs",
            f"for {PAIRS} pairs of words, the result is that of the operator's function",
            partial(_compare_values, module, unit, operator, fabric.width),
        )


def _check_stages(module: GateModule, latency: int) -> int:
    """Check that all paths from the words to the result pass `latency` registers.

    Control bits and the reset keep their values during a run, so they have no stage. Returns the
    number of bits with a stage.

    Raises
    ------
    Refuted
        If a gate combines bits of different stages, or a register depends on itself.
    """

    def bits_before(bit: Bit) -> list[Bit]:
        return [module.flop_of[bit]] if bit in module.flop_of else module.operands_of(bit)

    stages: dict[Bit, int] = {bit: 0 for port in "ab" for bit in module.inputs[port]}
    needs: dict[Bit, list[Bit]] = {}
    left = [*module.outputs["result"]]
    while left:
        bit = left.pop()
        if bit not in needs:
            needs[bit] = bits_before(bit)
            left += needs[bit]
    try:
        order = [*TopologicalSorter(needs).static_order()]
    except CycleError:
        message = "Registers of an operator must not depend on themselves"
        raise make_refutation(module.name, "result", message) from None
    for bit in order:
        behind = {stages[each] for each in needs[bit] if each in stages}
        if len(behind) > 1:
            name = module.names.get(bit) if isinstance(bit, int) else bit
            message = (
                f"Operator must combine words of one cycle, not of {min(behind)} and "
                f"{max(behind)} cycles earlier (bit {name})"
            )
            raise make_refutation(module.name, "result", message)
        if behind:
            stages[bit] = behind.pop() + (bit in module.flop_of)
    for bit in module.outputs["result"]:
        if stages.get(bit, latency) != latency:
            message = f"Result must come {latency} cycles after the words, not {stages[bit]}"
            raise make_refutation(module.name, "result", message)
    return len(stages)


def _compare_values(module: GateModule, unit: OperatorUnit, operator: Operator, width: int) -> int:
    """Compare the result of an operator with its function; return the number of pairs.

    The words are known in the first cycle only.

    Raises
    ------
    Refuted
        If a result differs, or is not known.
    """
    program = GateProgram(module, {"result": [*range(width)]}, kept_as=np.int8)
    code = unit.operator_codes[unit.operators.index(operator)]
    pairs = _pairs_to_compare(operator, width)
    sums = operator.combine(*pairs, width)
    for start in range(0, PAIRS, PAIRS_AT_ONCE):
        a, b, wanted = (each[start : start + PAIRS_AT_ONCE] for each in (*pairs, sums))
        got = _execute_pairs(program, a, b, code, unit.latency)
        wrong = np.nonzero((got != _bits_of_words(wanted, range(width))).any(axis=0))[0]
        if len(wrong):
            k = wrong[0]
            shown = "".join("x" if bit == UNKNOWN else str(bit) for bit in got[::-1, k])
            message = (
                f"Operator {operator} must make {int(wanted[k]):0{width}b} of {int(a[k]):#x} and "
                f"{int(b[k]):#x}, not {shown}"
            )
            raise make_refutation(module.name, "result", message)
    return PAIRS


def _execute_pairs(
    program: GateProgram, a: Words, b: Words, code: int, latency: int
) -> NDArray[np.int8]:
    """Return the bits of the result for each pair of words, shape (bits, pairs)."""
    words = {"a": a, "b": b, "code": np.full_like(a, code), "rst": np.zeros_like(a)}
    given = {
        name: _bits_of_words(words[name], positions)
        for name, positions in program.inputs.items()
        if name in words
    }
    state = program.unknown_state(len(a))
    for _ in range(latency):
        state = program.next_state(program.cycle_bits(state, given), state)
        given = {name: bits for name, bits in given.items() if name not in ("a", "b")}
    return program.outputs_of(program.cycle_bits(state, given), "result").astype(np.int8)


def _bits_of_words(words: Words, positions: Collection[int]) -> NDArray[np.int8]:
    """Return some bits of each word, shape (positions, words)."""
    rows = np.array([*positions], int).astype(words.dtype)[:, None]
    bits: NDArray[np.int8] = (words >> rows & words.dtype.type(1)).astype(np.int8)
    return bits


def _pairs_to_compare(operator: Operator, width: int) -> tuple[Words, Words]:
    """Return pairs of words: random ones, typical ones, corner cases, and the identity word.

    Corner cases are the words whose ones are neighbours. In a floating-point format these are,
    among others, infinities, a NaN, the largest subnormal and the least normal number.
    """
    random, count = np.random.default_rng(width), PAIRS // 4
    corners = [0, *((1 << top) - (1 << low) for top in range(width + 1) for low in range(top))]

    def random_words(bits: int) -> Words:
        size = -(-bits // 8)
        words = [int.from_bytes(random.bytes(size), "little") >> 8 * size - bits
                 for _ in range(count)]  # fmt: skip
        return np.array(words, np.uint64 if width <= 64 else object)

    def random_corners() -> Words:
        return np.array(corners, random_words(1).dtype)[random.integers(0, len(corners), count)]

    a, b = random_words(width), random_words(width)
    typical = a, b
    if operator.typical:
        typical = operator.typical(a, width), operator.typical(b, width)
    edges = random_corners()
    # A quarter of the partners of corner cases are the identity word.
    partners = np.where(np.arange(count) % 4, random_corners(), operator.identity(width))
    first = [a, a, typical[0], edges]
    second = [b, a ^ random_words(width // 2), typical[1], partners]
    return np.concatenate(first), np.concatenate(second).astype(a.dtype)
