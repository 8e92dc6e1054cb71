"""The structural top of a netlist with its arrays as generate loops: as long as there are modules.

What there is for each node, group of nodes or part of a tree is a scope of its own: the net that
plain text calls ``tx_17`` is ``node[17].tx``, and the instance ``router_at_17`` is
``node[17].router``, or ``node[17].router.one`` where nodes have several modules. What differs
between the members of a scope is in tables: entry k of a constant is that of member k.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from ...rtl.arrays import Array, Fixed, Numbers, OneOf, Part, Slice
from ...rtl.memories import address_width
from ...rtl.netlist import Netlist
from ..design import PlainNames
from ..module_text import ModuleText
from ..syntax import bits_of, declared, filled, wires
from ..top import RomContents, declarations, top_structure
from .nets import Nets
from .scope import Scope
from .tables import WIDEST, Turns, constant_of, local_name, unused, up

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

    def __init__(self, netlist: Netlist, prefix: str, modules: Mapping[str, ModuleText]) -> None:
        self._netlist, self._nets = netlist, Nets(netlist)
        self._prefix, self._modules = prefix, modules

    def text(self, top: str) -> str:
        """The text of the module."""
        nets, netlist = self._nets, self._netlist
        order = nets.scopes_in_order()
        # A loop declares the nets that those behind it choose from: these are written first.
        written = {scope: [*self._loop(scope)] for scope in reversed(order)}
        loops = [line for scope in order for line in written[scope]]
        alone = [line for array in netlist.arrays if not array.scope
                 for line in self._instance(array, "  ")]  # fmt: skip
        structure = top_structure(netlist, compact=True)
        lines = [f"module {top} (", *declared(declarations(structure)), ");"]
        lines += wires("  ", structure.signals)
        lines += [*nets.tables.text(), *nets.joined]
        # Names of members of loops stand behind the loops: tools may refuse to look ahead.
        behind = [
            f"  assign {name} = {nets.parts(parts)};" for name, parts in netlist.wired.items()
        ]
        driven = {net for array in netlist.arrays for net, _ in array.outputs.values()}
        shown = [
            f"{name} = {nets.literal(name)}"
            for name in netlist.outputs
            if name not in driven and name not in netlist.wired
        ]
        behind += filled("  assign ", shown, ";") if shown else []
        generate = ["  genvar k;", "  generate", *loops, "  endgenerate"]
        return "\n".join([*lines, *generate, *behind, *alone, "endmodule\n"])

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
                     for line in self._instances(inside, name, each)]  # fmt: skip
        yield f"    for (k = 0; k < {inside.size}; k = k + 1) begin : {scope}"
        yield from wires("      ", widths)
        yield from nets.inside[scope]
        yield from inside.declared
        yield from instances
        yield "    end"

    def _instances(self, inside: Scope, name: str, arrays: list[Array]) -> Iterator[str]:
        """Those of a name in a scope: of a module, or of one of several."""
        if len(arrays) == 1 and len(arrays[0]) == inside.size:
            yield from self._instance(arrays[0], "      ", inside, name)
            return
        yield f"      case ({inside.module_of(name, arrays)})"
        bits = address_width(len(arrays) + 1)
        for number, array in enumerate(arrays):
            yield f"        {bits}'d{number}: begin : {name}"
            yield from self._instance(array, "          ", inside, "one")
            yield "        end"
        yield f"        default: begin : no_{name} end"
        yield "      endcase"

    def _instance(
        self, array: Array, indent: str, inside: Scope | None = None, name: str = ""
    ) -> list[str]:
        """An instance alone, or that of the member k of a scope."""
        known = self._modules[self._prefix + array.module].structure.ports
        pins = [f".{name}({name})" for name in ("clk", "rst") if name in known]
        for port, sources in array.inputs.items():
            if port in known and inside is None:
                alone = [s if isinstance(s, Fixed) else _part(s) for s in sources]
                pins.append(f".{port}({self._nets.parts(alone)})")
            elif port in known and inside is not None:
                text = inside.pin(sources, array, f"{local_name(array.name)}_{port}")
                pins.append(f".{port}({text})")
        for port, (net, width) in array.outputs.items():
            if "{}" in net:
                net = bits_of(self._nets.local[net], 0, width, self._nets.width_of(net))
            pins.append(f".{port}({net})")
        parameters = ""
        if array.which is not None:
            parameters = f" #({self._contents(array, inside)})"
        head = f"{indent}{self._prefix}{array.module}{parameters} {name or array.name} ("
        return [head, *filled(f"{indent}  ", pins, ");")]

    def _contents(self, array: Array, inside: Scope | None) -> str:
        """The parameters of ROMs."""
        assert array.which is not None
        each = [RomContents(rows, array.width) for rows in array.contents]
        if inside is None:
            return each[int(array.which[0])].parameters()
        turns = None
        if len(array) == inside.size < 2 * len(each) and array.width <= WIDEST:
            which = array.which[np.argsort(array.index)]
            turns = Turns.of(np.array(array.contents)[which])
            each = [each[k] for k in which[: turns.step].tolist()] if turns else each
        bits, name = each[0].bits, unused(f"{local_name(array.name)}_rows".upper(),
                                          self._nets.tables.names)  # fmt: skip
        value = 0
        for contents in reversed(each):
            value = value << bits | contents.value
        self._nets.joined += constant_of(name, bits * len(each), value)
        if turns:
            here = unused(f"{local_name(array.name)}_here".upper(), self._nets.tables.names)
            depth = len(each[0].rows)
            inside.declared += turns.text(here, name, array.width, depth)
            return each[0].parameters(here)
        if len(each) == 1:
            return each[0].parameters(name)
        low = inside.low(array, array.which, bits, len(each), f"{local_name(array.name)}_number")
        return each[0].parameters(f"{name}[{low}{up(bits)}]")


def _part(source: Slice | OneOf | Numbers) -> Part | Fixed:
    """What drives bits of an instance alone."""
    every: Iterator[Part | Fixed] = source.parts(1)
    return next(every)
