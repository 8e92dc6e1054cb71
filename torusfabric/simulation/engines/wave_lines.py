"""Which lines of a fabric waves show.

Every engine writes a VCD file in its own way, but all of them show the same lines: inside a scope
``node_K`` for each node, what leaves and enters by each of its ports, and beside these scopes, what
concerns the whole. So one module suffices to write a save file of GTKWave, and to make FST of them.
"""

from collections.abc import Iterator
from typing import NamedTuple

from ...rtl.fabric import Fabric
from ...rtl.netlist import Fixed, Instance, Netlist, Part, Role

__all__ = ["WaveLine", "wave_lines"]


class WaveLine(NamedTuple):
    """A line that waves show, named as in the file.

    Parameters
    ----------
    node : int or None
        Whose it is; None for what concerns the whole.
    name : str
        In the scope of its node.
    part : Part
        The bits of a net that it shows.
    """

    node: int | None
    name: str
    part: Part

    @property
    def scope(self) -> str:
        """The scope of its node; empty for the whole."""
        return "" if self.node is None else f"node_{self.node}"


def wave_lines(fabric: Fabric) -> list[WaveLine]:
    """What waves show of a fabric: the whole, then node by node.

    Returns
    -------
    list of WaveLine
        The inputs of the whole come first. Of each node: its out-ports, its in-ports, and what
        else it gives.
    """
    netlist = fabric.netlist
    whole = dict.fromkeys([*netlist.inputs, *netlist.nets])
    ports: dict[int, list[WaveLine]] = {}
    others: dict[int, list[WaveLine]] = {}
    for instance in netlist.instances:
        node = instance.node
        if node is not None:
            ports.setdefault(node, []).extend(_port_lines(instance, netlist, fabric))
            others.setdefault(node, []).extend(_other_lines(instance, netlist))
            for net in instance.outputs.values():
                whole.pop(net, None)
    found = [WaveLine(None, net, *netlist.whole(net)) for net in whole if net not in netlist.wired]
    for node in sorted(ports):
        found += ports[node] + others[node]
    return found


def _port_lines(instance: Instance, netlist: Netlist, fabric: Fabric) -> Iterator[WaveLine]:
    """The lines of the ports of a node, if an instance is its router."""
    if instance.role is not Role.ROUTER:
        return
    sent = netlist.words(instance.outputs["tx"], fabric.width)
    for kind, parts in (("out", sent), ("in", instance.inputs.get("rx", ()))):
        for name, part in zip(fabric.program.topology.port_names, parts, strict=False):
            if not isinstance(part, Fixed):
                yield WaveLine(instance.node, f"{kind}_{name}", part)


def _other_lines(instance: Instance, netlist: Netlist) -> Iterator[WaveLine]:
    """The lines of all else that an instance of a node gives."""
    routing = instance.role is Role.ROUTER
    nets = {net for port, net in instance.outputs.items() if not (routing and port == "tx")}
    for net in sorted(nets):
        yield WaveLine(instance.node, net.removesuffix(f"_{instance.node}"), *netlist.whole(net))
