"""The lines of a fabric that waves show, and GTKWave's save files of them.

Every engine writes a VCD file in its own way, but all of them show the same lines: inside a scope
``node_K`` for each node, what leaves and enters by each of its ports, and beside these scopes, what
concerns the whole. A save file has a group for the whole, and a closed group for each node.
"""

import io
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ...rtl.fabric import Fabric
from ...rtl.netlist import Part, Role
from ...toolchain.quoting import visible
from ...topology import Topology

__all__ = ["WaveLine", "gtkwave_text", "wave_lines"]


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
    """Return the lines of a fabric: those of the whole, then node by node.

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
        node, outputs = instance.node, dict(instance.outputs)
        if node is None:
            continue
        for net in outputs.values():
            whole.pop(net, None)
        if instance.role is Role.ROUTER:
            sent = netlist.words(outputs.pop("tx"), fabric.width)
            # Routers are given only the words that they pass on.
            came = [next(each.parts(1)) for each in fabric.core.build.arriving(np.array([node]))]
            ports.setdefault(node, []).extend(
                WaveLine(node, f"{kind}_{name}", part)
                for kind, parts in (("out", sent), ("in", came))
                for name, part in zip(fabric.program.topology.port_names, parts, strict=False)
                if part.net in netlist.nets
            )
        others.setdefault(node, []).extend(
            WaveLine(node, net.removesuffix(f"_{node}"), *netlist.whole(net))
            for net in sorted({*outputs.values()})
        )
    found = [WaveLine(None, net, *netlist.whole(net)) for net in whole if net not in netlist.wired]
    for node in sorted(others):
        found += ports.get(node, []) + others[node]
    return found


def gtkwave_text(wave: Path, scope: str, topology: Topology, lines: Sequence[WaveLine]) -> str:
    """The save file for a file of waves, to be written beside it with the ending ``.gtkw``.

    Parameters
    ----------
    wave : Path
        Where the waves will be for GTKWave.
    scope : str
        The scope of the whole in the waves, in which are those of nodes.
    topology : Topology
        For the names of nodes.
    lines : sequence of WaveLine
        What to show, in this order.
    """
    text, prefix = io.StringIO(), f"{scope}."
    from vcd.gtkw import GTKWSave  # here, since few runs write waves

    save = GTKWSave(text)
    # Absolute both: GTKWave finds them too where they have been moved together.
    # Bytes that are no UTF-8 stay what they are, so that GTKWave finds the file.
    path = visible(str(wave), keep="".join(map(chr, range(0xDC80, 0xDD00))))
    save.dumpfile(path)
    save.savefile(str(Path(path).with_suffix(".gtkw")))
    save.treeopen(prefix)
    save.signals_width(200)
    for name in ("clk", "rst"):
        save.trace(prefix + name, alias=name)
    for node, shown in groupby(lines, lambda line: line.node):
        title = "fabric" if node is None else f"node {node} {topology.node_name(node)}"
        with save.group(visible(title), closed=node is not None):
            for line in shown:
                full = f"{prefix}{line.scope}{'.' * bool(line.scope)}{line.name}"
                bits = f"[{line.part.width - 1}:0]" if line.part.width > 1 else ""
                # A port as ``out +0`` or ``in +0``; otherwise the name by itself.
                way, _, port = line.name.partition("_")
                at_port = node is not None and port in topology.port_names
                save.trace(full + bits, alias=f"{way} {port}" if at_port else line.name)
    return text.getvalue()
