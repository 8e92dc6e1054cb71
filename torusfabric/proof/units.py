"""Units: modules that symbolic runs replace by an abstraction, and proofs of the abstractions.

=========  ==================================  ==========================================
unit       abstraction in symbolic runs        proof by induction, for all words
=========  ==================================  ==========================================
operator   symbolic sum (`sums`)               result equals the operator's own formula
link       delay line (`delay_line_module`)    word leaves `registers` cycles later
=========  ==================================  ==========================================

Why links are replaced: a long link is a memory used as a ring, whose write address at the start of
a run is arbitrary.

The *identity word* of an operator changes no word that it is combined with, such as 0 for a sum.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ..rtl.links import Link
from ..rtl.netlist import Role
from ..rtl.operator_unit import make_pair_module
from .gates import FabricOperators, Flop, Gate, GateModule
from .model import HarnessBuilder, earlier_value

if TYPE_CHECKING:
    from ..rtl import Fabric
    from ..verilog.design import Design
    from .solver import Harness

__all__ = ["bit_classes", "delay_line_module", "link_harnesses", "neutral_bits",
           "operator_harnesses", "find_operators", "link_registers"]  # fmt: skip


def delay_line_module(name: str, width: int, registers: int, parts: int = 0) -> GateModule:
    """Return a module that stands for a link in symbolic execution: a delay line.

    Parameters
    ----------
    name : str
        Name of the module.
    width : int
        Bits of a word.
    registers : int
        Number of registers of `width` bits, one behind the other.
    parts : int
        For a link that carries each word in parts, their number. The input `sends` is then high
        with a word to send. A word becomes unknown if `sends` is low in its cycle, or high before
        all of its parts are sent.
    """
    bits = np.arange((registers + 1) * width)
    stages: list[list[Any]] = bits.reshape(registers + 1, width).tolist()
    gates, entering, sends = list[Gate](), list(stages), bits.size
    for number in range(parts):
        entering[number] = [sends + 1 + number * width + bit for bit in range(width)]
        for y, bit in zip(entering[number], stages[number], strict=True):
            low, high = ("x", bit) if number == 0 else (bit, "x")
            gates.append(Gate("MUX", y, low, high, sends))
    flops = [
        Flop(q, d)
        for now, later in zip(entering, stages[1:], strict=False)
        for d, q in zip(now, later, strict=True)
    ]
    inputs = {"sent": stages[0]} | ({"sends": [sends]} if parts else {})
    return GateModule(name, inputs, {"arrived": stages[-1]}, gates=gates, flops=flops)


def link_registers(fabric: Fabric) -> dict[str, int]:
    """Return the delay of each link module in cycles, which is its number of registers.

    The result is a dict: name of the module -> delay. An arc of n cycles has a link of n - 1
    registers here, because the sending router has a register, too.
    """
    found = {}
    for name, role in fabric.netlist.roles.items():
        if role is Role.LINK:
            link = fabric.netlist.modules[name]()
            assert isinstance(link, Link)
            found[name] = link.registers
    return found


def bit_classes(fabric: Fabric) -> list[list[int]]:
    """Return the classes of bit positions in a word, each as a list of positions.

    Two positions are in one class if the identity word of every operator has equal bits there. (The
    identity word leaves the result of its operator unchanged.) Most operators have identity words
    of equal bits. Those of signed minimum and maximum have another highest bit, which is then a
    class of its own.
    """
    found: dict[tuple[int, ...], list[int]] = {}
    for position in range(fabric.width):
        found.setdefault(neutral_bits(fabric, position), []).append(position)
    return [*found.values()]


def neutral_bits(fabric: Fabric, position: int) -> tuple[int, ...]:
    """Return one bit for each operator, as a tuple: the bit of its identity word at `position`.

    The identity word changes no word it is combined with, such as 0 for a sum.
    """
    operators = fabric.operator_unit.operators if fabric.operator_unit else ()
    return tuple(operator.identity(fabric.width) >> position & 1 for operator in operators)


def find_operators(fabric: Fabric, design: Design) -> FabricOperators:
    """Return the name of the operator module of a fabric, and the classes of bit positions.

    Two positions are in one class if the identity word of every operator has equal bits there, see
    `bit_classes`. A fabric without a reduction has no operator module. `design` is the Verilog of
    the fabric.
    """
    unit = fabric.operator_unit
    if unit is None:
        return FabricOperators([], bit_classes(fabric))
    name = fabric.prefix + make_pair_module(unit, fabric.width).name
    return FabricOperators(
        [name] * (name in design.modules), bit_classes(fabric), latency=unit.latency
    )


def operator_harnesses(fabric: Fabric, design: Design) -> Iterator[Harness]:
    """Yield the proof task for the operator module: it computes the formulas of its operators.

    The task is a harness, a Verilog module with assertions for the solver. `design` is the Verilog
    of the fabric. Operators without a formula are left out; `operators` compares them with their
    functions.
    """
    unit, width = fabric.operator_unit, fabric.width
    for module in find_operators(fabric, design).modules:
        assert unit is not None
        model = HarnessBuilder(design, module.removeprefix(fabric.prefix), resets=False)
        ages = range(unit.latency + 1)
        resets = [earlier_value("rst", age) for age in ages if model.has_name("rst")]
        formulas = [
            (operator, code, operator.proof("a", "b", width))
            for code, operator in zip(unit.operator_codes, unit.operators, strict=True)
            if operator.proof
        ]
        for operator, code, formula in formulas:
            others = [earlier_value(f"(code != {code})", age) for age in ages]
            right = f"result == {earlier_value(formula, unit.latency)}"
            model.claim(
                f"result_is_{operator.label}",
                " || ".join([*resets, *others * (unit.n_control_bits > 0), right]),
            )
        if formulas:
            yield model.make_harness("for all words, the result is that of the chosen operator")


def link_harnesses(fabric: Fabric, design: Design) -> Iterator[Harness]:
    """Yield a proof task for each link module: a word leaves after the delay of the link.

    The task is a harness, a Verilog module with assertions for the solver. `design` is the Verilog
    of the fabric.
    """
    for name, registers in link_registers(fabric).items():
        model = HarnessBuilder(design, name, resets=False)
        if model.has_name("at"):
            model.claim("at_is_within_the_line", f"at < {registers}", ago=1)
        # A reset changes the ring address while words are in the link: exclude recent resets.
        resets = [earlier_value("rst", k) for k in range(registers + 1) if model.has_name("rst")]
        right = " || ".join([*resets, f"arrived == {earlier_value('sent', registers)}"])
        model.claim("words_come_out_in_time", right, ago=registers + 1)
        yield model.make_harness(
            f"for all words, at all times, a word leaves the link {registers} cycles after it "
            "entered"
        )
