"""The structural top of a netlist with its arrays as generate loops: as long as there are modules.

What there is for each node, group of nodes or part of a tree is a scope of its own: the net that
plain text calls ``tx_17`` is ``node[17].tx``, and the instance ``router_at_17`` is
``node[17].router``, or ``node[17].router.one`` where nodes have several modules. What differs
between the members of a scope is in tables: entry k of a constant is that of member k.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ...rtl.arrays import Array
from ...rtl.netlist import Netlist
from ..design import PlainNames
from ..expressions import range_of
from ..module_text import Structure, declared, filled
from .nets import Nets
from .scope import InstanceWriter, Scope
from .tables import local_name

__all__ = ["CompactTop"]

#: The widest constants that Verilator takes unless it is asked to.
VERILATOR_BITS = 1 << 16


class CompactTop:
    """The structural top of a netlist as generate loops.

    Parameters
    ----------
    prefix : str
        What the names of all other modules begin with.
    """

    def __init__(self, netlist: Netlist, prefix: str, modules: Mapping[str, Structure]) -> None:
        self._netlist, self._nets = netlist, Nets(netlist)
        self._writer = InstanceWriter(self._nets, prefix, modules)

    def text(self, top: str, ports: Mapping[str, str]) -> str:
        """The text of the module, given the declarations of its ports."""
        nets, netlist = self._nets, self._netlist
        loops = [line for scope in nets.scopes for line in self._loop(scope)]
        alone = [line for array in netlist.arrays if not array.scope
                 for line in self._writer.instance(array, "  ")]  # fmt: skip
        lines = [f"module {top} (", *declared(ports), ");"]
        lines += _wires("  ", {net: bits for net, bits in nets.singles.items() if net not in ports})
        lines += [*nets.tables.text(), *nets.joined]
        for name, parts in netlist.wired.items():
            lines.append(f"  assign {name} = {nets.parts(parts)};")
        driven = {net for array in netlist.arrays for net, _ in array.outputs.values()}
        shown = [
            f"{name} = {nets.literal(name)}"
            for name in netlist.outputs
            if name not in driven and name not in netlist.wired
        ]
        lines += filled("  assign ", shown, ";") if shown else []
        generate = ["  genvar k;", "  generate", *loops, "  endgenerate"]
        return "\n".join([*lines, *alone, *generate, "endmodule\n"])

    @property
    def about(self) -> list[str]:
        """What is said of it above the text, once there is the text."""
        said = ["loops: what is router_at_3 and tx_3 without is node[3].router (where nodes have",
                "  several modules, node[3].router.one) and node[3].tx here"]  # fmt: skip
        most = max((bits * len(known) for _, bits, known, _ in self._nets.tables.known), default=0)
        if most > VERILATOR_BITS:
            said.append(f"constants of {most} bits: verilator --max-num-width {most}")
        return said

    @property
    def plain_names(self) -> PlainNames:
        """What all this is called in plain text."""
        nets = self._nets
        return PlainNames(
            {f"{array.scope}.{local_name(array.name)}": array.name
             for arrays in nets.scopes.values() for array in arrays},
            {f"{scope}.{nets.local[net]}": net for net, scope in nets.owner.items()},
        )  # fmt: skip

    def _loop(self, scope: str) -> Iterator[str]:
        """A scope: its nets, and what there is of each instance."""
        nets, by_name, widths = self._nets, dict[str, list[Array]](), dict[str, int]()
        for array in nets.scopes[scope]:
            by_name.setdefault(local_name(array.name), []).append(array)
            for net, width in array.outputs.values():
                if local := nets.local.get(net):
                    widths[local] = max(width, widths.get(local, 0))
        inside = Scope(nets, scope)
        instances = [line for name, each in by_name.items()
                     for line in self._writer.instances(inside, name, each)]  # fmt: skip
        yield f"    for (k = 0; k < {inside.size}; k = k + 1) begin : {scope}"
        yield from _wires("      ", widths)
        yield from nets.inside[scope]
        yield from inside.declared
        yield from instances
        yield "    end"


def _wires(indent: str, widths: Mapping[str, int]) -> Iterator[str]:
    """The declarations of nets."""
    for width in dict.fromkeys(widths.values()):
        nets = [net for net, each in widths.items() if each == width]
        yield from filled(f"{indent}wire {range_of(width)}", nets, ";")
