"""The structural top of a netlist: net arrays, and generate loops over nodes.

Each *scope* of the netlist (nodes, groups of nodes, a level of a tree) is a generate loop. The net
``tx`` of node 17 is ``tx[17]``, its router is ``node[17].router``, or ``node[17].router.one`` where
nodes have several modules of that name. A scope of one member is no loop. Whatever differs between
members is in constants: entry k of a constant is that of member k.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from ..rtl.arrays import Array
from ..rtl.netlist import Netlist
from .loops import Loop, Nets, local_name
from .module_text import ModuleText, Port, Structure
from .syntax import (
    bits_of,
    concatenated,
    constant_lines,
    declared,
    listed,
    range_of,
    wires,
    wrapped,
)

__all__ = ["RomContents", "TopText", "contents_of", "instance_counts"]

#: The widest constants that Verilator takes unless it is asked to.
VERILATOR_BITS = 1 << 16


@dataclass(frozen=True)
class RomContents:
    """Rows of a ROM.

    Parameters
    ----------
    width : int
        Bits of a row.
    """

    rows: tuple[int, ...]
    width: int

    @property
    def address_bits(self) -> int:
        """Bits of its address."""
        return max((len(self.rows) - 1).bit_length(), 1)

    @property
    def bits(self) -> int:
        """Bits of all rows."""
        return len(self.rows) * self.width

    def parameters(self, contents: str | None = None) -> str:
        """Return the parameters of the module in Verilog, with all rows or a name of these."""
        return (
            f".DEPTH({len(self.rows)}), .WIDTH({self.width}), .ADDRESS({self.address_bits}), "
            f".CONTENTS({contents or constant_lines(self.value, self.bits)})"
        )

    @property
    def value(self) -> int:
        """All rows as one number, the first least significant."""
        return sum(row << k * self.width for k, row in enumerate(self.rows))


def contents_of(netlist: Netlist) -> dict[str, RomContents]:
    """Return the different contents of ROMs, by the name of the first instance with each."""
    found: dict[RomContents, str] = {}
    for array in netlist.arrays:
        if array.roms is None:
            continue
        used, first = np.unique(array.roms.which, return_index=True)
        for at, number in sorted(zip(first.tolist(), used.tolist(), strict=True)):
            contents = RomContents(array.roms.contents[number], array.roms.width)
            found.setdefault(contents, array.name.format(array.index[at]))
    return {name: contents for contents, name in found.items()}


def instance_counts(
    netlist: Netlist, prefix: str, names: Mapping[RomContents, str]
) -> dict[str, int]:
    """Return the number of instances of each module, and of each contents of ROMs."""
    found = Counter[str]()
    for array in netlist.arrays:
        if array.roms is None:
            found[prefix + array.module] += len(array)
            continue
        contents, which, width = array.roms
        for number, times in enumerate(np.bincount(which).tolist()):
            if times:
                found[names[RomContents(contents[number], width)]] += times
    return dict(found)


class TopText:
    """The text of the structural top of a netlist.

    Parameters
    ----------
    prefix : str
        Beginning of the names of all other modules.

    Attributes
    ----------
    structure : Structure
        Its ports, and the nets that are there once.
    instance_names, instance_parts : dict of str to str
        Name in the netlist of each instance, and the part of the fabric that it is:
        ``node[].router`` -> ``router_at_{}``, ``router of node {}``.
    net_names : dict of str to str
        Names in the netlist of words of arrays of nets: ``tx[]`` -> ``tx_{}``.
    about : list of str
        Lines for the header of the text.
    """

    def __init__(self, netlist: Netlist, prefix: str, modules: Mapping[str, ModuleText]) -> None:
        scopes: dict[str, list[Array]] = {}
        for array in netlist.arrays:
            scopes.setdefault(array.scope, []).append(array)
        for scope, arrays in [*scopes.items()]:
            if not scope or not any(array.index.any() for array in arrays):
                del scopes[scope]
        alone = [array for array in netlist.arrays if array.scope not in scopes]
        scopes = {scope: scopes[scope] for scope in sorted(scopes, key=_order_of)}
        ports = {name: Port("input") for name in ("clk", "rst")}
        ports |= {name: Port("input", width) for name, width in netlist.inputs.items()}
        ports |= {name: Port("output", width) for name, width in netlist.outputs.items()}
        own = {
            name: width
            for array in alone
            for net, width in array.outputs.values()
            if (name := net.format(array.index[0])) not in ports
        }
        self.structure = Structure(ports, own)
        taken = {array.name.format(array.index[0]) for array in alone} | scopes.keys()
        nets = Nets(netlist.inputs | own | netlist.outputs, scopes, taken)
        loops = [Loop(nets, scope, scopes[scope], prefix, modules) for scope in scopes]
        single = [Loop(nets, "", [array], prefix, modules) for array in alone]
        outputs = [
            f"{name} = {concatenated([*map(nets.part, reversed(parts))])}"
            for name, parts in netlist.wired.items()
        ]
        outputs += _shown(netlist, nets, scopes)
        lines = [*wires("  ", own), *nets.declarations()]
        if loops:
            inside = [line for loop in loops for line in loop.lines]
            lines += ["  genvar k;", "  generate", *inside, "  endgenerate"]
        lines += [listed("  assign ", outputs, ";")] if outputs else []
        self.net_names = nets.names
        self._lines = lines + [line for loop in single for line in loop.lines]
        self.instance_names, self.instance_parts = dict[str, str](), dict[str, str]()
        for scope, arrays in {**scopes, "": alone}.items():
            for array in arrays:
                number = "{}" if scope else str(array.index[0])
                name = array.name.format(number)
                path = f"{scope}[].{local_name(array.name)}" if scope else name
                self.instance_names[path] = name
                where = f" of node {number}" if array.nodes is not None else ""
                self.instance_parts[path] = array.role.value + where
        self._paths = {
            name: path for loop in [*loops, *single] for name, path in loop.paths.items()
        }
        self.about = ["entry k of a constant is that of node, or other member, k of a loop"]
        if nets.widest > VERILATOR_BITS:
            self.about.append(
                f"constants of {nets.widest} bits: verilator --max-num-width {nets.widest}"
            )

    def text(self, name: str) -> str:
        """Return the text of the module."""
        ports = {
            port: f"{facts.direction} wire {range_of(facts.width)}{port}"
            for port, facts in self.structure.ports.items()
        }
        head = [f"module {name} (", *declared(ports), ");"]
        return "\n".join([*wrapped([*head, *self._lines]), "endmodule\n"])

    def path(self, array: Array, index: int) -> str:
        """Return the name of an instance within the module, with those of blocks before it."""
        return self._paths[array.name, array.module].format(index)


def _order_of(scope: str) -> tuple[bool, bool]:
    """Return the order of loops: control, nodes, and the others in their order."""
    return scope != "group", scope != "node"


def _shown(netlist: Netlist, nets: Nets, scopes: Mapping[str, list[Array]]) -> Iterator[str]:
    """Yield the assignments of outputs that are words of arrays of nets."""
    for arrays in scopes.values():
        for array in arrays:
            for net, width in array.outputs.values():
                if net.format(array.index[0]) in netlist.outputs:
                    for k in array.index.tolist():
                        name, of = nets.word(net, str(k))
                        yield f"{net.format(k)} = {bits_of(name, 0, width, of)}"
