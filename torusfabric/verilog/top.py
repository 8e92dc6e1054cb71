"""The structural top of a netlist: its nets, and one instance after another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

import numpy as np

from ..rtl.netlist import Fixed, Netlist, Part, Role
from .module_text import ModuleText, Port, Structure
from .rom_contents import RomContents
from .syntax import bits_of, concatenated, declared, filled, range_of, wires

__all__ = ["concatenation", "declarations", "instance_counts", "top_structure", "top_text"]


def instance_counts(
    netlist: Netlist, prefix: str, names: Mapping[RomContents, str]
) -> dict[str, int]:
    """How many instances there are of each module, and of each contents of ROMs."""
    found = Counter[str]()
    for array in netlist.arrays:
        if array.which is None:
            found[prefix + array.module] += len(array)
            continue
        for number, times in enumerate(np.bincount(array.which).tolist()):
            if times:
                found[names[RomContents(array.contents[number], array.width)]] += times
    return dict(found)


def top_structure(netlist: Netlist, *, compact: bool = False) -> Structure:
    """The ports and nets of the structural top; if compact, those that have names of their own."""
    ports = {name: Port("input") for name in ("clk", "rst")}
    ports |= {name: Port("input", width) for name, width in netlist.inputs.items()}
    ports |= {name: Port("output", width) for name, width in netlist.outputs.items()}
    nets = netlist.single_nets if compact else netlist.nets
    return Structure(ports, {name: w for name, w in nets.items() if name not in ports})


def declarations(structure: Structure) -> dict[str, str]:
    """The declarations of ports, by their names."""
    return {
        name: f"{port.direction} wire {range_of(port.width)}{name}"
        for name, port in structure.ports.items()
    }


def top_text(
    netlist: Netlist,
    top: str,
    prefix: str,
    modules: Mapping[str, ModuleText],
    names: Mapping[RomContents, str],
) -> str:
    """The structural top of a netlist; contents of ROMs that are equal are there once.

    Parameters
    ----------
    top, prefix : str
        Its name, and what the names of all other modules begin with.
    modules : dict of str to ModuleText
        What it has instances of.
    names : dict of RomContents to str
        Those of contents.
    """
    structure, nets = top_structure(netlist), netlist.nets
    named = lambda net: (net, nets[net])
    lines = [f"module {top} (", *declared(declarations(structure)), ");"]
    lines += wires("  ", structure.signals)
    for contents, name in names.items():
        constant = f"{name}_contents = {contents.constant}"
        lines.append(f"  localparam {range_of(contents.bits)}{constant};")
    for name, parts in netlist.wired.items():
        lines.append(f"  assign {name} = {concatenation(parts, named)};")
    for instance in netlist.instances:
        known = modules[prefix + instance.module].structure.ports
        pins = [f".{name}({name})" for name in ("clk", "rst") if name in known]
        pins += [
            f".{port}({concatenation(parts, named)})"
            for port, parts in instance.inputs.items()
            if port in known
        ]
        pins += [f".{port}({net})" for port, net in instance.outputs.items()]
        parameters = ""
        if instance.role is Role.ROM:
            contents = RomContents(instance.contents, instance.width)
            parameters = f" #({contents.parameters(f'{names[contents]}_contents')})"
        lines.append(f"  {prefix}{instance.module}{parameters} {instance.name} (")
        lines += filled("    ", pins, ");")
    return "\n".join([*lines, "endmodule\n"])


def concatenation(parts: Iterable[Part | Fixed], named: Callable[[str], tuple[str, int]]) -> str:
    """Parts of nets as an expression, the most significant first; neighbours are one.

    Parameters
    ----------
    parts : iterable of (Part or Fixed)
        The least significant first.
    named : function of str -> (str, int)
        What a net is called in the text, and its bits.
    """
    joined: list[Part | Fixed] = []
    for part in parts:
        last = joined[-1] if joined else None
        if (
            isinstance(part, Part)
            and isinstance(last, Part)
            and (part.net, part.start) == (last.net, last.start + last.width)
        ):
            joined[-1] = last._replace(width=last.width + part.width)
        else:
            joined.append(part)
    texts = []
    for part in reversed(joined):
        if isinstance(part, Fixed):
            texts.append(f"{part.width}'d{part.value}")
        else:
            name, bits = named(part.net)
            texts.append(bits_of(name, part.start, part.width, bits))
    return concatenated(texts)
