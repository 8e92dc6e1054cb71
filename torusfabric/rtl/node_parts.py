# amaranth: UnusedElaboratable=no
"""What every node of a fabric has: endpoint, router, operators, and their ROMs.

In a core without memories it has ports in place of the endpoint.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from ..program import DirectMap, RenumberedMap
from ..program.timing import DISTRIBUTION
from ..topology import cayley
from .distribution import ControlStage
from .endpoint import Endpoint, EndpointSettings
from .fabric_builder import FabricBuilder, Top
from .memories import address_width
from .netlist import Fixed, Part, Parts, Role
from .placement import RouterPlan, combiner_name
from .router import Router

if TYPE_CHECKING:
    from ..program import Form
    from ..topology import Groups
    from .operator_unit import OperatorUnit

__all__ = [
    "EndpointWiring",
    "add_combiners",
    "add_endpoints",
    "add_routers",
    "add_streams",
    "endpoint_settings",
]


def add_streams(build: FabricBuilder) -> None:
    """Ports for every node of a core: the words it sends, and those that arrive.

    A cycle after ``tx_address`` shows a number w, ``inject_N`` is to be flit w of each chunk of
    node N. While ``rx_enable``, ``receive_N`` is what arrives at each in-port, and ``rx_address``
    counts wave * steps + step - 1.
    """
    injections = len(build.sources.injections)
    for node in range(build.nodes):
        build.add_input("inject", injections * build.width, node=node)
        build.wire_output("receive", build.arriving(node), node=node)
    steps, flits = build.loop.rows, build.loop.flits
    for name, source, bits in (
        ("tx_address", "read_0", address_width(flits)),
        ("rx_enable", "store_0", 1),
        ("rx_address", "write_0", address_width(steps * flits)),
    ):
        # As late as what routers are given.
        given: Parts = build.low(source, bits)
        build.add_module(f"{name}_stage", partial(ControlStage, {"next": bits}), role=Role.CONTROL)
        for k in range(DISTRIBUTION):
            later = f"{name}_{'early' if k + 1 < DISTRIBUTION else 'now'}"
            stage = f"{name}_stage_{k}"
            build.add(stage, f"{name}_stage", inputs={"next": given},
                    outputs={"next_near": (later, bits)})  # fmt: skip
            given = build.whole(later)
        build.wire_output(name, build.whole(later))


def add_endpoints(build: FabricBuilder) -> None:
    """Add one endpoint a node, one module a shape."""
    endpoints, settings = build.placement.endpoints, endpoint_settings(build)
    modules = []
    for number, shape in enumerate(endpoints.shapes):
        make = partial(build.endpoint, shape, settings)
        build.add_module(f"endpoint_{number}", make, role=Role.ENDPOINT)
        modules.append(EndpointWiring(build, number, make()))
    for node, variant in enumerate(build.variant_of):
        number = int(endpoints.shape_of[0 if build.program.by_offset else variant])
        modules[number].add(node, *_outside(build, node, modules[number].bits))


def endpoint_settings(build: FabricBuilder) -> EndpointSettings:
    """What all endpoints have in common."""
    program = build.program
    halves = tuple(_half(form) for form in program.forms)
    private, groups = build.top is Top.CORE, build.distribution.groups
    return EndpointSettings(
        injection_delay=build.sources.injection_delay,
        forms=len(program.forms),
        width=build.width,
        nodes=build.nodes,
        write_bits=address_width(build.nodes) if private else groups.place_bits,
        address_bits=build.address_bits,
        memories=len(program.memories),
        own=tuple(
            sum(memory.own and memory.layout == layout for memory in program.memories)
            for layout in range(1 + max(form.layout for form in program.forms))
        ),
        skip_bits=build.placement.endpoints.skip_bits,
        private=private,
        gathered=build.top is Top.HOST and build.nodes > 1,
        host_stages=build.placement.endpoints.read_stages,
        halves=halves,
        offset_bits=_offset_bits(program.root_groups) if any(halves) else 0,
        unit=_adding(build),
        spare=_spare(build),
    )


def _offset_bits(groups: Groups) -> int:
    """Bits of the offset from the root of a group."""
    return sum(map(address_width, cayley(groups.torus).moduli))


def _half(form: Form) -> int:
    """The address of what is received, where a memory has what would be sent below; else 0."""
    mapped = form.receive_map
    if isinstance(mapped, RenumberedMap):
        mapped = mapped.mapped
    return mapped.base if form.by_offset and isinstance(mapped, DirectMap) else 0


def _spare(build: FabricBuilder) -> bool:
    """Whether what was written last is there a cycle before the first read of any run."""
    if build.top is Top.HOST:
        return all(form.timing.spare for form in build.program.forms)
    # A run begins some cycles after a message was loaded; but in the cycle after a write of a core.
    return build.top is Top.STREAM


def _adding(build: FabricBuilder) -> OperatorUnit | None:
    """What combines words on their way to injection ports, where anything does."""
    adds = any(len(readers) > 1 for readers in build.sources.injections)
    return build.operator_unit if adds else None


class EndpointWiring:
    """Adds instances of one endpoint module.

    Parameters
    ----------
    number : int
        Of the module.

    Attributes
    ----------
    bits : dict of str to int
        The ports of the module.
    """

    def __init__(self, build: FabricBuilder, number: int, module: Endpoint) -> None:
        self._build, self._number = build, number
        self._shape = build.placement.endpoints.shapes[number]
        self.bits = {name: member.shape for name, member in module.signature.members.items()}
        self._inject_bits = self.bits.get("inject", 0)
        # What is the same for all nodes. A row is read from a ROM, and of addresses each node has
        # its own.
        self._common = [
            name
            for name in build.sequenced
            if name in self.bits and name != "row" and not name.startswith("read_")
        ]
        if build.top is Top.HOST:
            self._common += [name for name in build.from_host if name in self.bits]
        self._form = "form" in self.bits

    def add(
        self, node: int, inputs: Mapping[str, Parts], outputs: Mapping[str, tuple[str, int]]
    ) -> None:
        """Add the endpoint of a node, and its ROMs.

        Parameters
        ----------
        inputs, outputs : dict
            What is not the fabric's: by what the node's memories are written and read.
        """
        build, bits = self._build, self.bits
        inputs, outputs, wires = {**inputs}, {**outputs}, build.endpoint_wires(node)
        if wires.words:
            inputs["rx"] = build.incoming(node, [source for source, _ in wires.words])
        for name in self._common:
            inputs[name] = build.distribution.near(name, node, bits[name])
        for k, column in enumerate(wires.reads):
            name = f"read_{k}"
            inputs[name] = build.distribution.near(f"read_{column}", node, bits[name])
        for k, column in enumerate(wires.strobes):
            if (name := f"strobe_{k}") in bits:
                inputs[name] = build.distribution.near(f"store_{column}", node)
            if (name := f"strobe_ends_{k}") in bits:
                ends = build.placement.endpoints.ends[column]
                inputs[name] = build.distribution.near(f"ends_{ends}", node)
        if self._form:
            inputs["form"] = build.distribution.near("run_form", node)
        if "offset" in bits:
            inputs["offset"] = build.offset(node)
        if "row" in bits:
            tables = build.placement.endpoints.tables
            build.add_row_rom(f"row_{node}", node, "row", self._shape.row_bits, tables)
            inputs["row"] = build.whole(f"row_{node}")
        if self._inject_bits:
            outputs["inject"] = (f"inject_{node}", self._inject_bits)
        name, module = f"endpoint_at_{node}", f"endpoint_{self._number}"
        build.add(name, module, inputs=inputs, outputs=outputs, node=node)


def _outside(
    build: FabricBuilder, node: int, bits: Mapping[str, int]
) -> tuple[dict[str, Parts], dict[str, tuple[str, int]]]:
    """By what the memories of a node are written and read: the host port, or ports of its own."""
    number: Parts = (Fixed(node, address_width(build.nodes)),)
    inputs: dict[str, Parts] = {"node": number}
    outputs = {"read_data": (build.read_net(node), build.width)}
    if build.top is Top.CORE:
        inputs |= _private(build, node, bits) | {"write_node": number, "read_node": number}
    return inputs, outputs


def _private(build: FabricBuilder, node: int, bits: Mapping[str, int]) -> dict[str, Parts]:
    """Ports for one node: it writes its send memory, and reads its memories."""
    names = ["write_address", "write_data", "write_enable", "read_bank", "read_address"]
    ports: dict[str, Parts] = {}
    if sum(memory.own for memory in build.program.memories) > 1:
        names.insert(0, "write_bank")
    else:
        ports["write_bank"] = (Fixed(0, 1),)
    for name in names:
        ports[name] = build.add_input(name, bits[name], node=node)
    build.add_output("read_data", build.width, node=node)
    return ports


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
            made=build.sources.made,
            injections=len(next(iter(plan.injections.values()))),
            width=build.width,
        )
        build.add_module(combiner_name(placement, number), make, role=Role.COMBINER)
    sources, width = build.sources, build.width
    given = {"result": (build.ports + len(sources.delayed_results)) * width}
    if sources.made:
        given["made"] = build.ports * width
    for node, variant in enumerate(build.variant_of):
        # By offset nothing is combined but what is alike at all nodes.
        number = int(placement.operands_of[variant])
        plan = placement.operands[number]
        inputs: dict[str, Parts] = {
            "enable": build.distribution.near("busy", node),
            "rx": build.arriving(node),
        }
        if injected := build.injected(node, plan.injections[variant]):
            inputs["inject"] = injected
        if plan.row_bits:
            tables = build.placement.router_tables
            build.add_row_rom(f"operand_{node}", node, "setting_row", plan.row_bits, tables)
            inputs["select"] = build.whole(f"operand_{node}")
        elif plan.bits:
            inputs["select"] = _select(build, node, [bit.column for bit in plan.bits])
        if unit.bits:
            inputs["operator_code"] = build.distribution.near("operator_code", node)
        outputs = {name: (f"{name}_{node}", bits) for name, bits in given.items()}
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
            unit=build.operator_unit,
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
    made = build.whole(f"made_{node}") if build.sources.made else ()
    words = (*results, *made, *build.injected(node, router.injections[variant]))
    if words:
        inputs["inject"] = words
    if _needs_code(build, router):
        inputs["operator_code"] = build.distribution.near("operator_code", node)
    if router.columns:
        inputs["select"] = _select(build, node, router.columns)
    if router.row_bits:
        tables = build.placement.router_tables
        build.add_row_rom(f"setting_{node}", node, "setting_row", router.row_bits, tables)
        inputs["setting"] = build.whole(f"setting_{node}")
    outputs = {"tx": (f"tx_{node}", build.ports * build.width)}
    build.add(f"router_at_{node}", module, inputs=inputs, outputs=outputs, node=node)


def _needs_code(build: FabricBuilder, router: RouterPlan) -> bool:
    """Whether what out-ports select depends on the operator: the word that changes nothing may."""
    injections = len(next(iter(router.injections.values())))
    neutral = build.ports + len(build.sources.delayed) + _result_words(build) + injections
    selected = any(neutral in output.sources for output in router.crossbar.outputs)
    unit = build.operator_unit if selected else None
    return unit is not None and unit.identity_bits(build.width) > 0


def _result_words(build: FabricBuilder) -> int:
    """Words of the operators of a node: results, those of second registers, and what is made."""
    return build.sources.first_injection - build.sources.first_result
