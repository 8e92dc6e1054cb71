"""The structural top: the module that connects the instances of a netlist, as Verilog.

The user is `emit`. Each *scope* of the netlist (a set of places: the nodes, the groups of nodes, or
a level of a tree) becomes one generate loop over its *members*, the single places. Each net that
all members have becomes an array::

    netlist            Verilog
    net tx_17          tx[17]
    router_at_17       node[17].router       or node[17].router.one, where nodes have different
                                             modules with the instance name router

A scope with one member has no loop. Numbers that differ between members are constants of the top:
entry k belongs to member k.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from ..rtl.arrays import Array
from ..rtl.netlist import Netlist
from .loops import GenerateLoop, Nets, local_name
from .module_text import ModuleText, Port, Structure
from .syntax import (
    bits_of,
    comma_list,
    concatenate_names,
    constant_lines,
    declare_ports,
    declare_wires,
    range_of,
    wrap_lines,
)

__all__ = ["RomContents", "TopText", "distinct_rom_contents", "instance_counts"]

#: Bits of the widest constant that Verilator takes without an option.
VERILATOR_BITS = 1 << 16


@dataclass(frozen=True)
class RomContents:
    """The rows of a ROM.

    Parameters
    ----------
    rows : tuple of int
        Row k is the word at address k.
    width : int
        Bits of a row.
    """

    rows: tuple[int, ...]
    width: int

    @property
    def address_bits(self) -> int:
        """Bits of the address that selects a row; at least 1."""
        return max((len(self.rows) - 1).bit_length(), 1)

    @property
    def total_bits(self) -> int:
        """Bits of all rows."""
        return len(self.rows) * self.width

    def instance_parameters(self, contents: str | None = None) -> str:
        """Return the parameters of a ROM instance in Verilog.

        Parameters
        ----------
        contents : str, optional
            Name of a constant with the rows; by default the rows are written out.
        """
        return (
            f".DEPTH({len(self.rows)}), .WIDTH({self.width}), .ADDRESS({self.address_bits}), "
            f".CONTENTS({contents or constant_lines(self.packed_rows, self.total_bits)})"
        )

    @property
    def packed_rows(self) -> int:
        """All rows as one number, row 0 least significant."""
        return sum(row << k * self.width for k, row in enumerate(self.rows))


def distinct_rom_contents(netlist: Netlist) -> dict[str, RomContents]:
    """Return all different contents of ROMs: name of the first ROM with the contents -> contents.

    Parameters
    ----------
    netlist : Netlist
        Netlist with the ROMs.
    """
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
    """Return the number of instances of each module, and of ROMs with each contents.

    Keys are names of modules, and names of contents of ROMs.

    Parameters
    ----------
    netlist : Netlist
        Netlist of the fabric.
    prefix : str
        Beginning of the names of modules.
    names : dict of RomContents to str
        Contents of a ROM -> the name that the result uses for them.
    """
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
    """The Verilog of the top, the module that connects all instances of a netlist.

    Its names differ from those of the netlist, because it has generate loops and arrays of nets.

    Parameters
    ----------
    prefix : str
        Prefix of the names of all other modules.
    modules : dict of str to ModuleText
        Leaf modules, as `module_texts` returns them.

    Attributes
    ----------
    structure : Structure
        Ports of the top, and its nets outside loops.
    instance_names, instance_parts : dict of str to str
        Instance in the Verilog -> its name in the netlist, and the part of the fabric:
        ``node[].router`` -> ``router_at_{}``, and ``router of node {}``. `translate_path` fills in
        the number.
    net_names : dict of str to str
        Element of an array of nets -> its name in the netlist: ``tx[]`` -> ``tx_{}``.
    about : list of str
        Lines for the header of the file.
    """

    def __init__(self, netlist: Netlist, prefix: str, modules: Mapping[str, ModuleText]) -> None:
        scopes: dict[str, list[Array]] = {}
        for array in netlist.arrays:
            scopes.setdefault(array.scope, []).append(array)
        for scope, arrays in [*scopes.items()]:
            if not scope or not any(array.index.any() for array in arrays):
                del scopes[scope]
        alone = [array for array in netlist.arrays if array.scope not in scopes]
        scopes = {scope: scopes[scope] for scope in sorted(scopes, key=_loop_order)}
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
        loops = [GenerateLoop(nets, scope, scopes[scope], prefix, modules) for scope in scopes]
        single = [GenerateLoop(nets, "", [array], prefix, modules) for array in alone]
        outputs = [
            f"{name} = {concatenate_names([*map(nets.part_expression, reversed(parts))])}"
            for name, parts in netlist.wired.items()
        ]
        outputs += _output_assignments(netlist, nets, scopes)
        lines = [*declare_wires("  ", own), *nets.declaration_lines()]
        if loops:
            inside = [line for loop in loops for line in loop.lines]
            lines += ["  genvar k;", "  generate", *inside, "  endgenerate"]
        lines += [comma_list("  assign ", outputs, ";")] if outputs else []
        self.net_names = nets.net_patterns
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
        """Return the Verilog of the top, as a module with this name."""
        ports = {
            port: f"{facts.direction} wire {range_of(facts.width)}{port}"
            for port, facts in self.structure.ports.items()
        }
        head = [f"module {name} (", *declare_ports(ports), ");"]
        return "\n".join([*wrap_lines([*head, *self._lines]), "endmodule\n"])

    def instance_path(self, array: Array, index: int) -> str:
        """Return the path of instance `index` of an array in the top, with its generate blocks."""
        return self._paths[array.name, array.module].format(index)


def _loop_order(scope: str) -> tuple[bool, bool]:
    """Return a key by which generate loops are sorted: groups of nodes, then nodes, then others.

    `scope` is ``group``, ``node`` or another name of a loop.
    """
    return scope != "group", scope != "node"


def _output_assignments(
    netlist: Netlist, nets: Nets, scopes: Mapping[str, list[Array]]
) -> Iterator[str]:
    """Yield the text of an assignment for each output of the top whose net is in an array.

    Parameters
    ----------
    netlist : Netlist
        Netlist of the fabric, which has the outputs.
    nets : Nets
        Nets of the top.
    scopes : dict of str to (list of Array)
        Name of a generate loop -> instances inside.
    """
    for arrays in scopes.values():
        for array in arrays:
            for net, width in array.outputs.values():
                if net.format(array.index[0]) in netlist.outputs:
                    for k in array.index.tolist():
                        name, of = nets.element_expression(net, str(k))
                        yield f"{net.format(k)} = {bits_of(name, 0, width, of)}"
