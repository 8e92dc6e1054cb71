# amaranth: UnusedElaboratable=no
"""The routers of a fabric, with their ROMs, and the operators behind in-ports."""

from __future__ import annotations

from functools import partial

from .blueprint import Blueprint
from .combiner import Combiner
from .netlist import Part, Parts, Role
from .placement import RouterPlan
from .router import Router

__all__ = ["add_combiners", "add_routers"]


def _select(plan: Blueprint, node: int, columns: tuple[int, ...]) -> tuple[Part, ...]:
    """Some of the select bits that the sequencer gives, as a node is given them."""
    (whole,) = plan.distribution.near("select", node)
    assert isinstance(whole, Part)
    return tuple(Part(whole.net, column, 1) for column in columns)


def add_combiners(plan: Blueprint) -> None:
    """Add one operator unit a node, all alike."""
    net, sources = plan.netlist, plan.sources
    crossbar, unit = plan.placement.operands, plan.operator_unit
    assert crossbar is not None
    assert unit is not None
    make = partial(
        Combiner,
        crossbar,
        unit=unit,
        delayed=sources.delayed_results,
        injections=len(sources.injections),
        width=plan.width,
    )
    net.add_module("combiner", make, role=Role.COMBINER)
    columns = plan.placement.operand_columns
    bits = _result_words(plan) * plan.width
    for node in range(plan.nodes):
        inputs: dict[str, Parts] = {
            "enable": plan.distribution.near("busy", node),
            "rx": plan.arriving(node),
            "inject": plan.injected(node),
        }
        if columns:
            inputs["select"] = _select(plan, node, columns)
        if unit.bits:
            inputs["operator_code"] = plan.distribution.near("operator_code", node)
        outputs = {"result": (f"result_{node}", bits)}
        net.add(f"combiner_at_{node}", "combiner", inputs=inputs, outputs=outputs, node=node)


def add_routers(plan: Blueprint) -> list[tuple[str, int]]:
    """Add one router a node, one module a shape.

    Returns
    -------
    list of (str, int)
        Each module, and for how many nodes.
    """
    control = plan.placement
    for number, router in enumerate(control.routers):
        make = partial(
            Router,
            router.crossbar,
            bits=router.bits,
            row_bits=router.row_bits,
            delayed=plan.sources.delayed,
            injections=_result_words(plan) + len(next(iter(router.injections.values()))),
            width=plan.width,
        )
        plan.netlist.add_module(f"router_{number}", make, role=Role.ROUTER)
    counts = [0] * len(control.routers)
    for node, variant in enumerate(plan.variant_of):
        shown = 0 if plan.program.by_offset else variant
        number = int(control.router_of[shown])
        counts[number] += 1
        _add_router(plan, node, f"router_{number}", control.routers[number], shown)
    return [(f"router_{number}", count) for number, count in enumerate(counts)]


def _add_router(plan: Blueprint, node: int, module: str, router: RouterPlan, variant: int) -> None:
    """The router of a node, and its ROM."""
    net = plan.netlist
    enable = plan.distribution.near("busy", node)
    inputs: dict[str, Parts] = {"enable": enable, "rx": plan.arriving(node)}
    results = plan.netlist.whole(f"result_{node}") if plan.sources.results else ()
    words = (*results, *plan.injected(node, router.injections[variant]))
    if words:
        inputs["inject"] = words
    if router.columns:
        inputs["select"] = _select(plan, node, router.columns)
    if router.row_bits:
        rows = plan.placement.router_rows
        contents = tuple(router.rows.get(v, ()) for v in range(plan.loop.variants))
        plan.add_row_rom(f"setting_{node}", node, "setting_row", router.row_bits, contents, rows)
        inputs["setting"] = net.whole(f"setting_{node}")
    outputs = {"tx": (f"tx_{node}", plan.ports * plan.width)}
    net.add(f"router_at_{node}", module, inputs=inputs, outputs=outputs, node=node)


def _result_words(plan: Blueprint) -> int:
    """Results of the operators of a node, those of second registers included."""
    return plan.ports + len(plan.sources.delayed_results) if plan.sources.results else 0
