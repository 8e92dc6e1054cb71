# amaranth: UnusedElaboratable=no
"""What every node of a fabric has: endpoint, router, operators, and their ROMs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from amaranth.lib.wiring import Out

from ..topology import IntArray, cayley
from .arrays import Numbers, OneOf, Role, Slice, Source
from .combiner import Combiner
from .endpoint import EndpointPorts, EndpointSettings
from .endpoint_host import Endpoint
from .fabric_builder import FabricBuilder
from .flit_rows import received_pitch
from .memories import address_width
from .modules import Leaf
from .placement import RouterPlan, combiner_name
from .router import Router

__all__ = ["add_combiners", "add_endpoint_array", "add_endpoint_module", "add_endpoints",
           "add_routers", "endpoint_settings"]  # fmt: skip


def add_endpoints(build: FabricBuilder) -> None:
    """Add one endpoint a node that the host writes and reads, all of one module."""
    (shape,) = build.placement.endpoints.shapes
    make = partial(Endpoint, shape, endpoint_settings(build), build.nodes)
    bits, nodes = add_endpoint_module(build, 0, make), np.arange(build.nodes)
    inputs = {"node": (Numbers(nodes, address_width(build.nodes)),)}
    outputs = {"read_data": (build.read_net, build.word)}
    add_endpoint_array(build, 0, bits, nodes, inputs, outputs)


def endpoint_settings(build: FabricBuilder) -> EndpointSettings:
    """What all endpoints have in common."""
    program = build.program
    halves = tuple(form.upper_half for form in program.forms)
    offsets = cayley(program.root_groups.torus).moduli if any(halves) else ()
    adds = any(len(readers) > 1 for readers in build.sources.injections)
    return EndpointSettings(
        injection_delay=build.sources.injection_delay,
        forms=len(program.forms),
        width=build.width,
        address_bits=build.address_bits,
        skip_bits=build.placement.endpoints.skip_bits,
        halves=halves,
        offset_bits=sum(map(address_width, offsets)),
        unit=build.operator_unit if adds else None,
        pitch=received_pitch(program, 0) if build.beat > 1 else 1,
        late=bool(build.placement.frame and build.placement.frame.late),
        links=build.topology.longest_link,
    )


def add_endpoint_module(
    build: FabricBuilder, number: int, make: Callable[[], EndpointPorts]
) -> dict[str, int]:
    """Declare the module of a shape of endpoints; the bits of its ports."""
    build.add_module(f"endpoint_{number}", make, role=Role.ENDPOINT)
    return {name: member.shape for name, member in make().signature.members.items()}


def add_endpoint_array(
    build: FabricBuilder,
    number: int,
    bits: Mapping[str, int],
    nodes: IntArray,
    inputs: Mapping[str, Sequence[Source]],
    outputs: Mapping[str, tuple[str, int]],
) -> None:
    """Add the endpoints of some nodes, and their ROMs.

    Parameters
    ----------
    number, bits : int, dict of str to int
        Of the module, and its ports.
    nodes : ndarray of int, shape (nodes,)
    inputs, outputs : dict
        What is not the fabric's: by what the memories of nodes are written and read.
    """
    near, endpoints = build.distribution.near_each, build.placement.endpoints
    inputs, outputs = {**inputs}, {**outputs}
    wires = [endpoints.wires[variant] for variant in build.variant_of[nodes].tolist()]
    if wires[0].words:
        chosen = np.array([each.words for each in wires])[..., 0]
        inputs["rx"] = build.words(nodes, chosen)
    # What is the same for all nodes. A row is read from a ROM, and of addresses each node has its
    # own.
    common = [name for name in build.sequenced if name != "row" and not name.startswith("read_")]
    common += build.from_host
    for name in common:
        if name in bits:
            inputs[name] = (near(name, nodes, bits[name]),)
    for k in range(len(wires[0].reads)):
        columns = [each.reads[k] for each in wires]
        inputs[f"read_{k}"] = (_column(build, "read", columns, nodes, bits[f"read_{k}"]),)
    for k in range(len(wires[0].strobes)):
        columns = [each.strobes[k] for each in wires]
        if (name := f"strobe_{k}") in bits:
            inputs[name] = (_column(build, "store", columns, nodes),)
        if (name := f"strobe_ends_{k}") in bits:
            columns = [endpoints.ends[column] for column in columns]
            inputs[name] = (_column(build, "ends", columns, nodes),)
    if "form" in bits:
        inputs["form"] = (near("run_form", nodes),)
    if "offset" in bits:
        inputs["offset"] = build.offset(nodes)
    if "row" in bits:
        build.add_rows("row", nodes, "row", bits["row"], endpoints.tables)
        inputs["row"] = (Slice("row_{}", nodes, 0, bits["row"]),)
    if "inject" in bits:
        outputs["inject"] = ("inject_{}", bits["inject"])
    build.add_array("endpoint_at_{}", f"endpoint_{number}", nodes, inputs=inputs, outputs=outputs)


def _column(
    build: FabricBuilder,
    name: str,
    columns: Sequence[int],
    nodes: IntArray,
    bits: int | None = None,
) -> Slice | OneOf:
    """What the sequencer gives in a column of each of some nodes."""
    if len({*columns}) == 1:
        return build.distribution.near_each(f"{name}_{columns[0]}", nodes, bits)
    # All nodes choose among all columns.
    used = build.columns[name]
    slices = build.distribution.one_near([f"{name}_{k}" for k in used], nodes, bits)
    return OneOf(slices, np.searchsorted(used, columns))


class _Shape(NamedTuple):
    """A module with a crossbar, and which columns of the plan its select bits are."""

    module: str
    plan: RouterPlan
    make: Callable[[], Leaf]
    columns: Sequence[int]


def add_combiners(build: FabricBuilder) -> None:
    """Add the operators of each node, one module a shape."""
    placement, sources = build.placement, build.sources
    assert build.operator_unit is not None
    make = partial(
        Combiner,
        unit=build.operator_unit,
        delayed=sources.delayed_results,
        made=sources.made,
        width=build.width,
    )
    shapes = [
        _Shape(
            combiner_name(placement, number),
            plan,
            partial(make, plan.crossbar, injections=plan.word_count),
            [bit.column for bit in plan.bits if bit.column is not None],
        )
        for number, plan in enumerate(placement.operands)
    ]
    # By offset nothing is combined but what is alike at all nodes.
    number_of = placement.operands_of[build.variant_of]
    _add_crossbars(build, Role.COMBINER, shapes, number_of, build.variant_of)


def add_routers(build: FabricBuilder) -> list[tuple[str, int]]:
    """Add one router a node, one module a shape.

    Returns
    -------
    list of (str, int)
        Each module, and for how many nodes.
    """
    make = partial(
        Router, delayed=build.sources.delayed, width=build.width, unit=build.operator_unit
    )
    shapes = [
        _Shape(
            f"router_{number}",
            plan,
            partial(
                make,
                plan.crossbar,
                bits=plan.bits,
                row_bits=plan.row_bits,
                injections=plan.word_count,
            ),
            range(plan.column_count),
        )
        for number, plan in enumerate(build.placement.routers)
    ]
    # By offset all nodes have one router.
    shown = np.zeros_like(build.variant_of) if build.program.by_offset else build.variant_of
    number_of = build.placement.router_of[shown]
    _add_crossbars(build, Role.ROUTER, shapes, number_of, shown)
    counts = np.bincount(number_of, minlength=len(shapes)).tolist()
    return [(shape.module, count) for shape, count in zip(shapes, counts, strict=True)]


#: What instances with a crossbar are called, the net of the row of each, and the input that has it.
CROSSBARS = {
    Role.COMBINER: ("combiner_at_{}", "operand", "select"),
    Role.ROUTER: ("router_at_{}", "setting", "setting"),
}


def _add_crossbars(
    build: FabricBuilder,
    role: Role,
    shapes: Sequence[_Shape],
    number_of: IntArray,
    variant_of: IntArray,
) -> None:
    """Add routers, or operators, given the shape and the variant of each node, and their ROMs."""
    name, row, port = CROSSBARS[role]
    near = build.distribution.near_each
    for shape in shapes:
        build.add_module(shape.module, shape.make, role=role)
    for number, (module, plan, make, columns) in enumerate(shapes):
        if not len(nodes := np.flatnonzero(number_of == number)):
            continue
        members, variants = make().signature.members, variant_of[nodes].tolist()
        inputs: dict[str, Sequence[Source]] = {
            "enable": (near("busy", nodes),),
            "rx": build.arriving(nodes),
        }
        if plan.word_count:
            inputs["inject"] = build.words(nodes, np.array([plan.words[k] for k in variants]))
        coded = "operator_code" in members
        if coded and role is Role.ROUTER:
            inputs["operator_code"] = (near("operator_code", nodes),)
        if columns:
            whole = near("select", nodes)
            of_each = np.array([plan.columns[k] for k in variants])
            inputs["select"] = [
                Slice.made(whole.net, whole.number, of_each[:, column], 1) for column in columns
            ]
        if plan.row_bits:
            tables = build.placement.router_tables
            build.add_rows(row, nodes, "setting_row", plan.row_bits, tables)
            inputs[port] = (Slice(f"{row}_{{}}", nodes, 0, plan.row_bits),)
        if coded and role is Role.COMBINER:  # of which it is the last in the text
            inputs["operator_code"] = (near("operator_code", nodes),)
        outputs = {
            output: (f"{output}_{{}}", member.shape)
            for output, member in members.items()
            if member.flow is Out
        }
        build.add_array(name, module, nodes, inputs=inputs, outputs=outputs)
