# amaranth: UnusedElaboratable=no
"""The endpoints of a fabric with their ROMs; or, in a core without memories, ports of each node."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ..program import DirectMap, RenumberedMap
from ..program.timing import DISTRIBUTION
from .blueprint import Blueprint, Top
from .distribution import ControlStage
from .endpoint import Endpoint, EndpointSettings
from .memories import address_width
from .netlist import Fixed, Parts, Role

if TYPE_CHECKING:
    from ..program import Mode
    from .operator_unit import OperatorUnit

__all__ = ["EndpointWiring", "add_endpoints", "add_streams", "endpoint_settings"]


def add_streams(plan: Blueprint) -> None:
    """Ports for every node of a core: the words it sends, and those that arrive.

    A cycle after ``tx_address`` shows a number w, ``inject_N`` is to be flit w of each chunk of
    node N. While ``rx_enable``, ``receive_N`` is what arrives at each in-port, and ``rx_address``
    counts wave * steps + step - 1.
    """
    net, injections = plan.netlist, len(plan.sources.injections)
    for node in range(plan.nodes):
        net.add_input("inject", injections * plan.width, node=node)
        net.wire_output("receive", plan.arriving(node), node=node)
    steps, flits = plan.loop.rows, plan.loop.flits
    for name, source, bits in (
        ("tx_address", "read_0", address_width(flits)),
        ("rx_enable", "store_0", 1),
        ("rx_address", "write_0", address_width(steps * flits)),
    ):
        # As late as what routers are given.
        given: Parts = net.low(source, bits)
        net.add_module(f"{name}_stage", partial(ControlStage, {"next": bits}), role=Role.CONTROL)
        for k in range(DISTRIBUTION):
            later = f"{name}_{'early' if k + 1 < DISTRIBUTION else 'now'}"
            stage = f"{name}_stage_{k}"
            net.add(stage, f"{name}_stage", inputs={"next": given},
                    outputs={"next_near": (later, bits)})  # fmt: skip
            given = net.whole(later)
        net.wire_output(name, net.whole(later))


def add_endpoints(plan: Blueprint) -> None:
    """Add one endpoint a node, one module a shape."""
    endpoints, settings = plan.placement.endpoints, endpoint_settings(plan)
    modules = []
    for number, shape in enumerate(endpoints.shapes):
        make = partial(Endpoint, shape, settings)
        plan.netlist.add_module(f"endpoint_{number}", make, role=Role.ENDPOINT)
        modules.append(EndpointWiring(plan, number, make()))
    for node, variant in enumerate(plan.variant_of):
        number = int(endpoints.shape_of[0 if plan.program.by_offset else variant])
        modules[number].add(node)


def endpoint_settings(plan: Blueprint) -> EndpointSettings:
    """What all endpoints have in common."""
    program = plan.program
    halves = [_half(mode) for mode in program.modes]
    private, groups = plan.top is Top.CORE, plan.distribution.groups
    half = max(halves)
    return EndpointSettings(
        ports=plan.ports,
        first_result=plan.sources.first_result if plan.sources.results else 0,
        first_injection=plan.sources.first_injection,
        modes=len(program.modes),
        width=plan.width,
        nodes=plan.nodes,
        write_bits=address_width(plan.nodes) if private else groups.place_bits,
        address_bits=plan.address_bits,
        memories=len(program.memories),
        own=tuple(
            sum(memory.own and memory.layout == layout for memory in program.memories)
            for layout in range(1 + max(mode.layout for mode in program.modes))
        ),
        windows=plan.placement.endpoints.windows,
        private=private,
        gathered=plan.top is Top.HOST and plan.nodes > 1,
        host_stages=plan.placement.endpoints.read_stages,
        half=half,
        half_modes=tuple(int(each > 0) for each in halves),
        offset_bits=sum(map(address_width, program.root_groups.torus.moduli)) if half else 0,
        unit=_adding(plan),
        injection_delay=plan.sources.injection_delay,
        spare=_spare(plan),
    )


def _half(mode: Mode) -> int:
    """The address of what is received, where a memory has what would be sent below; else 0."""
    mapped = mode.receive_map
    if isinstance(mapped, RenumberedMap):
        mapped = mapped.mapped
    return mapped.base if mode.by_offset and isinstance(mapped, DirectMap) else 0


def _spare(plan: Blueprint) -> bool:
    """Whether what was written last is there a cycle before the first read of any run."""
    if plan.top is Top.HOST:
        return all(mode.timing.spare for mode in plan.program.modes)
    # A run begins some cycles after a message was loaded; but in the cycle after a write of a core.
    return plan.top is Top.STREAM


def _adding(plan: Blueprint) -> OperatorUnit | None:
    """What combines words on their way to injection ports, where anything does."""
    adds = any(len(readers) > 1 for readers in plan.sources.injections)
    return plan.operator_unit if adds else None


class EndpointWiring:
    """Adds instances of one endpoint module.

    Parameters
    ----------
    plan : Blueprint
    number : int
        Of the module.
    module : Endpoint
    """

    def __init__(self, plan: Blueprint, number: int, module: Endpoint) -> None:
        self._plan, self._number = plan, number
        self._shape = plan.placement.endpoints.shapes[number]
        self._members = module.signature.members
        self._inject_bits = len(module.inject) if "inject" in self._members else 0
        # What is the same for all nodes, and what gives it; a row is read from a ROM.
        self._common = [name for name in plan.sequenced if name in self._members and name != "row"]
        if plan.top is Top.HOST:
            self._common += [name for name in plan.from_host if name in self._members]
        self._mode = "mode" in self._members

    def add(self, node: int) -> None:
        """Add the endpoint of a node, and its ROMs."""
        plan, net, members = self._plan, self._plan.netlist, self._members
        inputs = {
            name: plan.distribution.near(name, node, self._members[name].shape)
            for name in self._common
        }
        inputs |= {"rx": plan.incoming(node)}
        if self._mode:
            inputs["mode"] = plan.distribution.near("run_mode", node)
        outputs: dict[str, tuple[str, int]] = {}
        if "offset" in members:
            inputs["offset"] = plan.offset(node)
        if "row" in members:
            local, rows = plan.placement.endpoint_rows, plan.placement.endpoints.rows
            plan.add_row_rom(f"row_{node}", node, "row", self._shape.row_bits, rows, local)
            inputs["row"] = net.whole(f"row_{node}")
        if self._inject_bits:
            outputs["inject"] = (f"inject_{node}", self._inject_bits)
        self._connect(node, inputs, outputs)
        name, module = f"endpoint_at_{node}", f"endpoint_{self._number}"
        net.add(name, module, inputs=inputs, outputs=outputs, node=node)

    def _connect(
        self, node: int, inputs: dict[str, Parts], outputs: dict[str, tuple[str, int]]
    ) -> None:
        """Connect what is not the fabric's: by what the node's memories are written and read."""
        number: Parts = (Fixed(node, address_width(self._plan.nodes)),)
        inputs["node"] = number
        outputs["read_data"] = (self._plan.read_net(node), self._plan.width)
        if self._plan.top is Top.CORE:
            inputs |= self._private(node) | {"write_node": number, "read_node": number}

    def _private(self, node: int) -> dict[str, Parts]:
        """Ports for one node: it writes its send memory, and reads its memories."""
        net, members = self._plan.netlist, self._members
        names = ["write_address", "write_data", "write_enable", "read_bank", "read_address"]
        ports: dict[str, Parts] = {}
        if sum(memory.own for memory in self._plan.program.memories) > 1:
            names.insert(0, "write_bank")
        else:
            ports["write_bank"] = (Fixed(0, 1),)
        for name in names:
            ports[name] = net.add_input(name, members[name].shape, node=node)
        net.add_output("read_data", self._plan.width, node=node)
        return ports
