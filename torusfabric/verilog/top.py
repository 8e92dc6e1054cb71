"""The structural top of a netlist: contents of ROMs, nets, and one instance after another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..rtl.netlist import Fixed, Netlist, Part, Role
from .module_text import ModuleText, Port, Structure
from .syntax import bits_of, concatenated, declared, filled, range_of, wires

__all__ = ["RomContents", "concatenation", "contents_of", "declarations", "instance_counts",
           "pieces", "top_structure", "top_text"]  # fmt: skip

#: Bits of contents in a line of text.
LINE_BITS = 320

#: Lines of contents that are joined at a time. Verilator takes a time that grows with the square of
#: what is in one pair of braces: 4.1 s for 480,000 bits in one, 0.25 s in groups.
JOINED = 32


@dataclass(frozen=True)
class RomContents:
    """What a ROM holds.

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
        """The parameters of the module in Verilog, with the name of a constant or with all rows."""
        return (
            f".DEPTH({len(self.rows)}), .WIDTH({self.width}), .ADDRESS({self.address_bits}), "
            f".CONTENTS({contents or self.constant})"
        )

    @property
    def constant(self) -> str:
        """All rows as one constant in Verilog, the last row first."""
        return pieces(self.value, self.bits)

    @property
    def value(self) -> int:
        """All rows as one number, the first least significant."""
        return sum(row << k * self.width for k, row in enumerate(self.rows))


def pieces(value: int, bits: int) -> str:
    """A constant with a line for so many bits, for there are tools that do not take any length."""
    digits, some = f"{value:0{-(-bits // 4)}x}", LINE_BITS // 4
    first = len(digits) % some or some
    texts = [digits[:first], *(digits[k : k + some] for k in range(first, len(digits), some))]
    high = bits - LINE_BITS * (len(texts) - 1)
    sizes = [high, *[LINE_BITS] * (len(texts) - 1)]
    every = [f"{size}'h{text.lstrip('0') or '0'}" for size, text in zip(sizes, texts, strict=True)]
    while len(every) > JOINED:
        every = [_joined(every[k : k + JOINED]) for k in range(0, len(every), JOINED)]
    return _joined(every)


def _joined(texts: Sequence[str]) -> str:
    return "{" + ",\n    ".join(texts) + "}"


def contents_of(netlist: Netlist) -> dict[str, RomContents]:
    """The different contents of ROMs, by the name of the first instance with each."""
    found: dict[RomContents, tuple[int, int, str]] = {}
    for array in netlist.arrays:
        if array.which is None:
            continue
        used, first = np.unique(array.which, return_index=True)
        for number, at in zip(used.tolist(), first.tolist(), strict=True):
            index = int(array.index[at])
            known = array.rank, index, array.name.format(index)
            contents = RomContents(array.contents[number], array.width)
            found[contents] = min(known, found.get(contents, known))
    return {name: contents for contents, (*_, name) in sorted(found.items(), key=lambda f: f[1])}


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
