"""Wave lines: the signals of a fabric that waveforms show, and GTKWave save files with them.

All engines show the same lines, although each writes VCD in its own way::

    SCOPE                    signals of the whole fabric
    SCOPE.node_K             words at the ports of node K, and other outputs of the node

A save file has one open group for the whole fabric, and one closed group for each node.
"""

import io
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ...rtl.fabric import Fabric
from ...rtl.netlist import Part, Role
from ...toolchain.quoting import escape_unprintable
from ...topology import Topology

__all__ = ["WaveLine", "gtkwave_text", "wave_lines"]


class WaveLine(NamedTuple):
    """A signal in a waveform file, shown as one line by a viewer.

    Parameters
    ----------
    node : int or None
        Node of the signal; None for a signal of the whole fabric.
    name : str
        Name within the scope of the node.
    part : Part
        Bits of a net that the signal shows.
    """

    node: int | None
    name: str
    part: Part

    @property
    def vcd_scope(self) -> str:
        """The VCD scope of the node, such as ``node_5``; empty for a signal of the whole fabric."""
        return "" if self.node is None else f"node_{self.node}"


def wave_lines(fabric: Fabric) -> list[WaveLine]:
    """Return the signals that waveforms show, each as one line of a viewer.

    Returns
    -------
    list of WaveLine
        First the signals of the whole fabric, external inputs before others. Then, node by node,
        its out-ports and in-ports, port by port, and its other outputs.
    """
    netlist = fabric.netlist
    whole = dict.fromkeys([*netlist.inputs, *netlist.net_widths])
    ports: dict[int, list[WaveLine]] = {}
    others: dict[int, list[WaveLine]] = {}
    for instance in netlist.instances:
        node, outputs = instance.node, dict(instance.outputs)
        if node is None:
            continue
        for net in outputs.values():
            whole.pop(net, None)
        if instance.role is Role.ROUTER:
            sent = netlist.split_net(outputs.pop("tx"), fabric.width)
            # A router has inputs only for words that it forwards, so in-ports come from the core.
            came = [
                next(each.instance_parts(1))
                for each in fabric.core.build.arriving_nets(np.array([node]))
            ]
            ports.setdefault(node, []).extend(
                WaveLine(node, f"{kind}_{name}", part)
                for kind, parts in (("out", sent), ("in", came))
                for name, part in zip(fabric.program.topology.port_names, parts, strict=False)
                if part.net in netlist.net_widths
            )
        others.setdefault(node, []).extend(
            WaveLine(node, net.removesuffix(f"_{node}"), *netlist.all_bits(net))
            for net in sorted({*outputs.values()})
        )
    found = [
        WaveLine(None, net, *netlist.all_bits(net)) for net in whole if net not in netlist.wired
    ]
    for node in sorted(others):
        found += ports.get(node, []) + others[node]
    return found


def gtkwave_text(wave: Path, scope: str, topology: Topology, lines: Sequence[WaveLine]) -> str:
    """Return the text of the GTKWave save file for a waveform file.

    Parameters
    ----------
    wave : Path
        The waveform file, as GTKWave will find it.
    scope : str
        VCD scope of the fabric, which contains the scopes of nodes.
    topology : Topology
        Source of the node names.
    lines : sequence of WaveLine
        Signals to show, in order.
    """
    text, prefix = io.StringIO(), f"{scope}."
    from vcd.gtkw import GTKWSave  # here, since few runs write waves

    save = GTKWSave(text)
    # With absolute names GTKWave also finds both files after they were moved together. Invalid
    # UTF-8 bytes in the name are kept, or else GTKWave would look for another file.
    path = escape_unprintable(str(wave), keep="".join(map(chr, range(0xDC80, 0xDD00))))
    save.dumpfile(path)
    save.savefile(str(Path(path).with_suffix(".gtkw")))
    save.treeopen(prefix)
    save.signals_width(200)
    for name in ("clk", "rst"):
        save.trace(prefix + name, alias=name)
    for node, shown in groupby(lines, lambda line: line.node):
        title = "fabric" if node is None else f"node {node} {topology.node_name(node)}"
        with save.group(escape_unprintable(title), closed=node is not None):
            for line in shown:
                full = f"{prefix}{line.vcd_scope}{'.' * bool(line.vcd_scope)}{line.name}"
                bits = f"[{line.part.width - 1}:0]" if line.part.width > 1 else ""
                # Ports are shown as ``out +0`` or ``in +0``, other signals by name.
                way, _, port = line.name.partition("_")
                at_port = node is not None and port in topology.port_names
                save.trace(full + bits, alias=f"{way} {port}" if at_port else line.name)
    return text.getvalue()
