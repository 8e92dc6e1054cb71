"""Farms: a netlist as arrays of objects, a C++ class for each module and an object an instance.

Each clock edge evaluates all instances once, in an order in which whatever an instance reads is
either a register or has been worked out before, and then lets all registers change.
"""

from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

from ...errors import WorkFailed
from ...rtl.netlist import Fixed, Part
from ...toolchain import cxx
from .cxxrtl import cxx_modules, include_folder

__all__ = ["Farm", "build_farm", "outputs"]

HERE = Path(__file__).parent

FLAGS = ("-std=c++14", "-fPIC", "-DNDEBUG", "-fvisibility=hidden", "-w")

#: Compiling units of at most so much text keeps several of them busy side by side.
UNIT = 400_000


class Source(NamedTuple):
    """Where bits of an input come from: bits of a net, or of a constant."""

    net: str
    start: int
    width: int


class Column(NamedTuple):
    """Bits of an input that come from one place.

    Parameters
    ----------
    port : str
    at : int
        The lowest of the bits.
    width : int
    shift : int or None
        How many bits to skip at the address; None where that differs between instances.
    shared : bool
        Whether all instances read the same place.
    """

    port: str
    at: int
    width: int
    shift: int | None
    shared: bool


class Group(NamedTuple):
    """Instances of one module on one level."""

    module: str
    instances: list[int]


class Farm(NamedTuple):
    """A built farm.

    Parameters
    ----------
    library : path
        The shared library with all classes.
    netlist : Netlist
    modules : dict of str to CxxModule
    groups : list of Group
        In the order of evaluation.
    sources : list of dict of str to (list of Source)
        For each instance, what each of its inputs is made of.
    columns : dict of str to (list of Column)
        For each module.
    """

    library: Path
    netlist: object
    modules: dict
    groups: list
    sources: list
    columns: dict

    def registered(self, net):
        """Whether a net is a register, or an input of the whole."""
        return _registered(self.netlist, self.modules, _drivers(self.netlist), net)


def build_farm(netlist, texts, *, optimize=2):
    """Build the classes of a netlist, each once.

    Parameters
    ----------
    netlist : Netlist
    texts : dict of str to str
        The Verilog of each module.
    optimize : int
        How hard the compiler tries, 0 to 3.

    Returns
    -------
    Farm

    Raises
    ------
    WorkFailed
        If instances read from each other in a circle without a register.
    """
    modules = cxx_modules(texts)
    sources = [_sources(netlist, instance) for instance in netlist.instances]
    groups = _groups(netlist, modules, sources)
    used = list(dict.fromkeys(group.module for group in groups))
    members: dict[str, list[int]] = defaultdict(list)
    for group in groups:
        members[group.module] += group.instances
    columns = {name: _columns(modules[name], [sources[k] for k in members[name]]) for name in used}
    units = _units([_class_text(k, modules[n], columns[n]) for k, n in enumerate(used)])
    library = cxx.build(
        "farm.so",
        {f"classes_{k}.cc": text for k, text in enumerate(units)}
        | {"farm.cc": (HERE / "farm.cc").read_text()},
        headers={name: (HERE / name).read_text() for name in ("farm.h", "drive.h")},
        flags=(*FLAGS, f"-O{optimize}", f"-I{include_folder()}"),
        link=("-shared",),
        what="the simulator",
    )
    return Farm(library, netlist, modules, groups, sources, columns)


def _sources(netlist, instance):
    """What each input of an instance is made of; of wired nets, what drives them."""
    found = {}
    for port, parts in instance.inputs.items():
        pieces = []
        for part in parts:
            if isinstance(part, Fixed):
                pieces.append(Source(str(part.value), 0, part.width))
            else:
                pieces += _resolve(netlist, part)
        found[port] = pieces
    return found


def _resolve(netlist, part):
    """Parts of nets that instances or inputs of the whole drive."""
    if part.net not in netlist.wired:
        return [Source(*_fields(part))]
    found, place = [], 0
    for piece in netlist.wired[part.net]:
        low, high = max(part.start, place), min(part.start + part.width, place + piece.width)
        if low < high:
            inner = Part(piece.net, piece.start + low - place, high - low)
            found += _resolve(netlist, inner)
        place += piece.width
    return found


def _fields(part):
    return part.net, part.start, part.width


def _drivers(netlist):
    """The instance and port that drive each net."""
    return {
        net: (number, port)
        for number, instance in enumerate(netlist.instances)
        for port, net in instance.outputs.items()
    }


def _registered(netlist, modules, drivers, net):
    if net not in drivers:
        return True
    number, port = drivers[net]
    return modules[netlist.instances[number].module].ports[port].registered


def _groups(netlist, modules, sources):
    """Put instances on levels: above all from which they read what is not registered."""
    drivers = _drivers(netlist)
    late = {net for net in drivers if not _registered(netlist, modules, drivers, net)}
    below = []
    for instance, inputs in zip(netlist.instances, sources, strict=True):
        known = modules[instance.module].ports
        nets = {piece.net for port, parts in inputs.items() if port in known for piece in parts}
        below.append({drivers[net][0] for net in nets & late})
    level = [0 if not drives else -1 for drives in below]
    waiting = [k for k, drives in enumerate(below) if drives]
    while waiting:
        still = []
        for k in waiting:
            levels = [level[j] for j in below[k]]
            if min(levels) < 0:
                still.append(k)
            else:
                level[k] = max(levels) + 1
        if len(still) == len(waiting):
            name = netlist.instances[still[0]].name
            raise WorkFailed(f"Instance {name} must not depend on itself without a register")
        waiting = still
    found = defaultdict(list)
    for k, instance in enumerate(netlist.instances):
        found[level[k], instance.node is not None, instance.module].append(k)
    return [Group(key[2], found[key]) for key in sorted(found)]


def _columns(module, rows):
    """How the inputs of a class are put together, given the sources of its instances."""
    columns = []
    for port, known in module.ports.items():
        if known.direction != "input" or port not in rows[0]:
            continue
        at = 0
        for k, first in enumerate(rows[0][port]):
            pieces = [row[port][k] for row in rows]
            assert all(piece.width == first.width for piece in pieces)
            shifts = {piece.start % 32 for piece in pieces}
            shared = all(piece == first for piece in pieces)
            width = min(first.width, known.width - at)
            columns.append(
                Column(port, at, width, shifts.pop() if len(shifts) == 1 else None, shared)
            )
            at += first.width
    return columns


def _class_text(number, module, columns):
    """The C++ of a class, and what lets the farm work with it."""
    puts, row, shared = [], 0, 0
    for column in columns:
        place = f"shared[{shared}]" if column.shared else f"row[{row}]"
        shift = f"row[{row + 1}]" if column.shift is None else column.shift
        puts.append(
            f"        farm::put<{column.at}, {column.width}>"
            f"(d.{module.ports[column.port].member}, farm::at({place}), {shift});"
        )
        shared += column.shared
        row += 0 if column.shared else 1 + (column.shift is None)
    values = [
        f"        case {k}: return d.{port.member}{'.curr' if port.registered else ''}.data;"
        for k, port in enumerate(outputs(module).values())
    ]
    clock = "d.p_clk = value<1>{1u}; d.prev_p_clk = value<1>{edge ? 0u : 1u};"
    reset = "d.p_rst = value<1>{on ? 1u : 0u};" if "rst" in module.ports else ""
    return "\n".join([
        f"namespace class_{number} {{",
        module.text,
        "struct Glue {",
        f"    typedef {module.name} Design;",
        f"    enum {{ columns = {row} }};",
        "    static CXXRTL_ALWAYS_INLINE",
        "    void gather(Design &d, const farm::Word *row, const farm::Word *shared) {",
        *puts,
        "    }",
        f"    static void clock(Design &d, bool edge) {{ {clock if module.clocked else ''} }}",
        f"    static void reset(Design &d, bool on) {{ {reset} }}",
        "    static const uint32_t *output(Design &d, size_t port) {",
        "        switch (port) {",
        *values,
        "        }",
        "        return nullptr;",
        "    }",
        "};",
        "}",
        'extern "C" __attribute__((visibility("default")))',
        f"const farm::Class class_{number}_type =",
        f"    farm::Describe<class_{number}::Glue>::value();",
        "",
    ])  # fmt: skip


def outputs(module):
    """The output ports of a class by name."""
    return {name: port for name, port in module.ports.items() if port.direction == "output"}


def _units(texts):
    """Put classes together into a few texts to compile."""
    head = '#include <cxxrtl/cxxrtl.h>\n#include "farm.h"\nusing namespace cxxrtl_yosys;\n'
    count = max(1, min(2, len(texts)), -(-sum(map(len, texts)) // UNIT))
    units = [head] * count
    for text in sorted(texts, key=len, reverse=True):
        smallest = min(range(count), key=lambda k: len(units[k]))
        units[smallest] += text
    return units
