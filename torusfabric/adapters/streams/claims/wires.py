"""Wires between the core, engines, own blocks, the control and ports, as the text has them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ....proof.lemmas import wired
from ....proof.wiring import Wires, stream_control_wires
from ....rtl.netlist import Fixed, Part, Role
from ..hardware import NETS

if TYPE_CHECKING:
    from ....contract.claims import Claim
    from ....proof.gates import Bit, GateText
    from ....rtl import Fabric

__all__ = ["wire_claims"]


def wire_claims(fabric: Fabric, text: GateText) -> Iterator[Claim]:
    """Yield the claims about wires."""
    says = "the engines of each node write and read that node, by rows of its own tables"
    yield wired("node ports", says, text, _node_wires(fabric, text))
    says = "the control hears each node, and each node is given what it and commands give"
    yield wired("stream control", says, text, stream_control_wires(fabric, text, NETS))
    says = "engines, control and crossings are wired to each other and to ports as planned"
    yield wired("streams", says, text, _planned_wires(fabric, text))


def _node_wires(fabric: Fabric, text: GateText) -> Wires:
    """Yield wires between the modules of a node: each input is the output of the same name."""
    for store in fabric.netlist.having(Role.ENDPOINT):
        engines = [text.instances[f"{name}_at_{store.node}"] for name in ("loader", "unloader")]
        outlets = (f"{name}_at_{store.node}" for name in ("own_block", "outlet"))
        outlet = next(name for name in outlets if name in text.instances)
        given = {port: bits for engine in engines for port, bits in engine.pins.items()}
        given["read_data"] = text.instances[store.name].pins["read_data"]
        for name in (store.name, outlet):
            for port in text.modules[text.instances[name].module].inputs:
                if port.startswith(("write_", "read_", "own_", "tkeep")):
                    bits = text.instances[name].pins[port]
                    yield name, port, [*bits], given[port][: len(bits)]
        for engine, verb in zip(engines, ("load", "unload"), strict=True):
            rom = f"rom_{verb}_row_{store.node}"
            if rom in text.instances:
                pins = text.instances[rom].pins
                yield rom, "address", [*pins["address"]], engine.pins["key"]
                yield f"the {verb}er", "row", [*engine.pins["row"]], pins["data"]


def _planned_wires(fabric: Fabric, text: GateText) -> Wires:
    """Yield the wires to all modules of streams, and the constants of nodes."""

    def planned(parts: Sequence[Part | Fixed]) -> Iterator[Bit]:
        for part in parts:
            if isinstance(part, Fixed):
                yield from (str(part.value >> k & 1) for k in range(part.width))
            else:
                yield from text.nets[part.net][part.start : part.start + part.width]

    for role in (Role.STREAM, Role.OUTLET):
        for instance in fabric.netlist.having(role):
            pins = text.instances[instance.name].pins
            for port, parts in instance.inputs.items():
                yield instance.name, port, [*pins[port]], [*planned(parts)]
