"""The modules that are proved by induction: routers, and operators behind in-ports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..rtl.cascade import branch_bits
from ..rtl.operator_pair import OperatorPair
from ..rtl.operator_unit import OperatorUnit
from ..rtl.placement import combiner_name
from .routers import Words, combiner_harness, router_harness, unit_harness
from .solver import Harness
from .sums import Adder, Operand, Sums

if TYPE_CHECKING:
    from ..rtl import Fabric
    from ..rtl.placement import OperandPlan, Placement
    from ..verilog.design import Design
    from .harness import HarnessText

__all__ = ["SLICE", "adders", "harnesses", "operator_modules"]

#: The bit of each word that is carried out.
SLICE = 0


def harnesses(fabric: Fabric, design: Design, placement: Placement) -> list[Harness]:
    """What is proved by induction."""
    program, width = fabric.program, fabric.width
    sources, ports = program.loop.sources, program.ports
    results = ports + len(sources.delayed_results) if sources.results else 0
    found = []
    for number, router in enumerate(placement.routers):
        injected = results + len(next(iter(router.injections.values())))
        words = Words(ports, sources.delayed, injected, width)
        found.append(_harness(router_harness(f"router_{number}", router, words), fabric, design))
    if sources.results:
        unit = OperatorUnit(program.operators)
        for number, plan in enumerate(placement.operands):
            count = len(next(iter(plan.injections.values())))
            words = Words(ports, sources.delayed_results, count, width)
            text = combiner_harness(combiner_name(placement, number), plan.crossbar, unit, words)
            found.append(_harness(text, fabric, design))
    return found + _operators(fabric, design)


def operator_modules(fabric: Fabric, design: Design) -> list[str]:
    """The module of operators inside endpoints, if there is one."""
    operators = fabric.program.operators
    if not operators:
        return []
    name = fabric.prefix + OperatorPair(OperatorUnit(operators), fabric.width).name
    return [name] if name in design.modules else []


def _operators(fabric: Fabric, design: Design) -> list[Harness]:
    """What is proved of the operators inside endpoints."""
    return [
        _harness(
            unit_harness(
                name.removeprefix(fabric.prefix),
                OperatorUnit(fabric.program.operators),
                fabric.width,
            ),
            fabric,
            design,
        )
        for name in operator_modules(fabric, design)
    ]


def _harness(text: HarnessText, fabric: Fabric, design: Design) -> Harness:
    """A harness around a module of the text, with what is inside that."""
    name = fabric.prefix + text.module
    names = [name]
    for parent in names:
        names += [child for child in design.instances.get(parent, {}) if child not in names]
    modules = "\n".join(design.modules[each] for each in names)
    ports = set(design.structures[name].ports)
    return Harness(text.module, text.text(name, ports), modules, text.properties, text.cycles)


def adders(fabric: Fabric, placement: Placement, sums: Sums) -> dict[str, Adder]:
    """The operators behind in-ports, as `harnesses` has them proved to be."""
    return {
        fabric.prefix + combiner_name(placement, number): _adder(fabric, plan, sums)
        for number, plan in enumerate(placement.operands)
    }


def _adder(fabric: Fabric, plan: OperandPlan, sums: Sums) -> Adder:
    """The operators of a shape."""
    sources, crossbar = fabric.program.loop.sources, plan.crossbar
    operands = tuple(
        tuple(
            Operand(source, output.bits, tuple(branch_bits(len(output.sources), k)))
            for k, source in enumerate(output.sources)
        )
        for output in crossbar.outputs
    )
    unit = OperatorUnit(fabric.program.operators)
    codes = unit.codes if unit.bits else ()
    count = len(next(iter(plan.injections.values())))
    return Adder(operands, sources.delayed_results, count, fabric.width, SLICE, sums, codes)
