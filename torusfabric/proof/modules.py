"""The modules that are proved by induction: routers, and operators behind in-ports."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ..rtl.crossbar import select_bits
from ..rtl.netlist import Role
from ..rtl.operator_unit import OperatorUnit
from .routers import Words, combiner_harness, router_harness
from .solver import Harness
from .sums import Adder, Operand, Sums

if TYPE_CHECKING:
    from ..rtl import Fabric
    from ..rtl.control import Control
    from ..verilog.design import Design
    from .harness import HarnessText

__all__ = ["SLICE", "adders", "harnesses"]

#: The bit of each word that is carried out.
SLICE = 0


def harnesses(fabric: Fabric, design: Design, control: Control) -> list[Harness]:
    """What is proved by induction."""
    program, width = fabric.program, fabric.width
    loop, ports = program.loop, program.ports
    results = ports + len(loop.delayed_results) if loop.results else 0
    found = []
    for number, router in enumerate(control.routers):
        injected = results + len(next(iter(router.injections.values())))
        words = Words(ports, loop.delayed, injected, width)
        found.append(_harness(router_harness(f"router_{number}", router, words), fabric, design))
    if loop.results:
        words = Words(ports, loop.delayed_results, len(loop.injections), width)
        text = combiner_harness(control, OperatorUnit(program.operators), words)
        found.append(_harness(text, fabric, design))
    return found


def _harness(text: HarnessText, fabric: Fabric, design: Design) -> Harness:
    """A harness around a module of the text, with what is inside that."""
    name = fabric.prefix + text.module
    names = [name]
    for parent in names:
        names += [child for child in design.instances.get(parent, {}) if child not in names]
    modules = "\n".join(design.modules[each] for each in names)
    head = re.search(rf"^module {name}\s*\((.*?)\);", design.modules[name], re.M | re.S)
    ports = set(re.findall(r"\w+", head[1])) if head else set()
    return Harness(text.module, text.text(name, ports), modules, text.properties, text.cycles)


def adders(fabric: Fabric, control: Control, sums: Sums) -> dict[str, Adder]:
    """The operators behind in-ports, as `harnesses` has them proved to be."""
    loop, crossbar = fabric.program.loop, control.operands
    if not loop.results or crossbar is None:
        return {}
    operands = tuple(
        tuple(
            Operand(source, output.bits, tuple(select_bits(len(output.sources), k)))
            for k, source in enumerate(output.sources)
        )
        for output in crossbar.outputs
    )
    unit = OperatorUnit(fabric.program.operators)
    codes = unit.codes if unit.bits else ()
    adder = Adder(
        operands, loop.delayed_results, len(loop.injections), fabric.width, SLICE, sums, codes
    )
    names = [name for name, role in fabric.netlist.roles.items() if role is Role.COMBINER]
    return {fabric.prefix + name: adder for name in names}
