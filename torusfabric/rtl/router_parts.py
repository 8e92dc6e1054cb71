# amaranth: UnusedElaboratable=no
"""The routers of a fabric, with their ROMs, and the operators behind in-ports."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from .fabric_builder import FabricBuilder
from .netlist import Part, Parts, Role
from .placement import RouterPlan, combiner_name
from .router import Router

__all__ = ["add_combiners", "add_routers"]


def _select(build: FabricBuilder, node: int, columns: Sequence[int | None]) -> tuple[Part, ...]:
    """Some of the select bits that the sequencer gives, as a node is given them."""
    (whole,) = build.distribution.near("select", node)
    assert isinstance(whole, Part)
    return tuple(Part(whole.net, column, 1) for column in columns if column is not None)


def add_combiners(build: FabricBuilder) -> None:
    """Add the operators of each node, one module a shape."""
    from .combiner import Combiner

    placement, unit = build.placement, build.operator_unit
    assert unit is not None
    for number, plan in enumerate(placement.operands):
        make = partial(
            Combiner,
            plan.crossbar,
            unit=unit,
            delayed=build.sources.delayed_results,
            injections=len(next(iter(plan.injections.values()))),
            width=build.width,
        )
        build.add_module(combiner_name(placement, number), make, role=Role.COMBINER)
    bits = _result_words(build) * build.width
    for node, variant in enumerate(build.variant_of):
        shown = 0 if build.program.by_offset else variant
        number = int(placement.operands_of[shown])
        plan = placement.operands[number]
        inputs: dict[str, Parts] = {
            "enable": build.distribution.near("busy", node),
            "rx": build.arriving(node),
        }
        if injected := build.injected(node, plan.injections[shown]):
            inputs["inject"] = injected
        if plan.bits:
            inputs["select"] = _select(build, node, [bit.column for bit in plan.bits])
        if unit.bits:
            inputs["operator_code"] = build.distribution.near("operator_code", node)
        outputs = {"result": (f"result_{node}", bits)}
        module = combiner_name(placement, number)
        build.add(f"combiner_at_{node}", module, inputs=inputs, outputs=outputs, node=node)


def add_routers(build: FabricBuilder) -> list[tuple[str, int]]:
    """Add one router a node, one module a shape.

    Returns
    -------
    list of (str, int)
        Each module, and for how many nodes.
    """
    control = build.placement
    for number, router in enumerate(control.routers):
        make = partial(
            Router,
            router.crossbar,
            given=router.given,
            row_bits=router.row_bits,
            delayed=build.sources.delayed,
            injections=_result_words(build) + len(next(iter(router.injections.values()))),
            width=build.width,
        )
        build.add_module(f"router_{number}", make, role=Role.ROUTER)
    counts = [0] * len(control.routers)
    for node, variant in enumerate(build.variant_of):
        shown = 0 if build.program.by_offset else variant
        number = int(control.router_of[shown])
        counts[number] += 1
        _add_router(build, node, f"router_{number}", control.routers[number], shown)
    return [(f"router_{number}", count) for number, count in enumerate(counts)]


def _add_router(
    build: FabricBuilder, node: int, module: str, router: RouterPlan, variant: int
) -> None:
    """The router of a node, and its ROM."""
    enable = build.distribution.near("busy", node)
    inputs: dict[str, Parts] = {"enable": enable, "rx": build.arriving(node)}
    results = build.whole(f"result_{node}") if build.sources.results else ()
    words = (*results, *build.injected(node, router.injections[variant]))
    if words:
        inputs["inject"] = words
    if router.columns:
        inputs["select"] = _select(build, node, router.columns)
    if router.row_bits:
        tables = build.placement.router_tables
        build.add_row_rom(f"setting_{node}", node, "setting_row", router.row_bits, tables)
        inputs["setting"] = build.whole(f"setting_{node}")
    outputs = {"tx": (f"tx_{node}", build.ports * build.width)}
    build.add(f"router_at_{node}", module, inputs=inputs, outputs=outputs, node=node)


def _result_words(build: FabricBuilder) -> int:
    """Results of the operators of a node, those of second registers included."""
    return build.ports + len(build.sources.delayed_results) if build.sources.results else 0
