"""Compiled models: a netlist as arrays of objects, a C++ class for each module.

Each clock edge evaluates all instances once, in an order in which whatever an instance reads is
either a register or has been worked out before, and then lets all registers change. ROMs are
objects of one template; what they hold is data, so that neither the text nor the time to compile
depends on it.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple

from ...errors import WorkFailed
from ...rtl.endpoint import Endpoint
from ...rtl.netlist import ROM, Fixed, Instance, Netlist, Part, Role
from ...toolchain import cxx
from ...verilog import ModuleText
from .cxxrtl import CxxClass, CxxPort, cxx_classes, include_folder

__all__ = ["Column", "Group", "Model", "Source", "build_model"]

HERE = Path(__file__).parent

#: The pass of GCC 12.2 that finds turned bytes, part of the last one, compiles words that are
#: put together from bytes wrongly: `p.slice<39,32>().concat(p.slice<15,8>()).concat(..)`.
FLAGS = (
    "-std=c++14", "-fPIC", "-DNDEBUG", "-fvisibility=hidden", "-w", "-fno-expensive-optimizations",
)  # fmt: skip

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
    at : int
        The lowest of the bits.
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
    """Instances of one class on one level."""

    name: str
    instances: list[int]


class Model(NamedTuple):
    """A built model.

    Parameters
    ----------
    library : path
        The shared library with all classes.
    class_names : list of str
        The class of each instance.
    groups : list of Group
        In the order of evaluation.
    sources : list of dict of str to (list of Source)
        For each instance, what each of its inputs is made of.
    columns : dict of str to (list of Column)
        For each class.
    banks : dict of str to (dict of str to str)
        Of each class, the banks of endpoints that can be reached, and which members they are.
    """

    library: Path
    netlist: Netlist
    classes: dict[str, CxxClass]
    class_names: list[str]
    groups: list[Group]
    sources: list[dict[str, list[Source]]]
    columns: dict[str, list[Column]]
    banks: dict[str, dict[str, str]]

    def class_of(self, number: int) -> CxxClass:
        """The class of an instance."""
        return self.classes[self.class_names[number]]

    def registered(self, net: str) -> bool:
        """Whether a net is a register, or an input of the whole."""
        driver = self.netlist.drivers().get(net)
        return driver is None or self.class_of(driver[0]).ports[driver[1]].registered


def build_model(netlist: Netlist, modules: Mapping[str, ModuleText], *, optimize: int = 2) -> Model:
    """Build the classes of a netlist, each once.

    Parameters
    ----------
    modules : dict of str to ModuleText
        The Verilog of each module; ROMs need none.
    optimize : int
        How hard the compiler tries, 0 to 3.

    Raises
    ------
    WorkFailed
        If instances read from each other in a circle without a register.
    """
    classes = cxx_classes({name: each for name, each in modules.items() if name != ROM})
    sources = [_sources(netlist, instance) for instance in netlist.instances]
    names = []
    for instance in netlist.instances:
        name, made = _rom_class(instance) if instance.role is Role.ROM else (instance.module, None)
        names.append(name)
        if made:
            classes[name] = made
    groups = _groups(netlist, [classes[name] for name in names], names, sources)
    used = list(dict.fromkeys(group.name for group in groups))
    members: dict[str, list[int]] = defaultdict(list)
    for group in groups:
        members[group.name] += group.instances
    columns = {name: _columns(classes[name], [sources[k] for k in members[name]]) for name in used}
    banks = {name: _banks(netlist, name, classes[name]) for name in used}
    texts = {name: _class_text(k, classes[name], columns[name], banks[name].values())
             for k, name in enumerate(used)}  # fmt: skip
    units = _units([*texts.values()])
    library = cxx.build(
        "model.so",
        {f"classes_{k}.cc": text for k, text in enumerate(units)}
        | {"model.cc": (HERE / "model.cc").read_text()},
        headers={name: (HERE / name).read_text() for name in ("model.h", "drive.h", "streams.h")},
        flags=(*FLAGS, f"-O{optimize}", f"-I{include_folder()}"),
        link=("-shared",),
        what="the simulator",
    )
    return Model(library, netlist, classes, names, groups, sources, columns, banks)


def _rom_class(rom: Instance) -> tuple[str, CxxClass]:
    """The class of a ROM: it depends on its width, and on the parts its address is made of."""
    parts = "_".join(str(part.width) for part in rom.inputs["address"])
    ports = {
        "address": CxxPort("p_address", "input", registered=False, width=32),
        "data": CxxPort("p_data", "output", registered=True, width=rom.width),
    }
    made = CxxClass(f"model::Rom<{rom.width}>", "", clocked=True, ports=ports, banks={}, rom=True)
    return f"rom {rom.width} {parts}", made


def _sources(netlist: Netlist, instance: Instance) -> dict[str, list[Source]]:
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


def _resolve(netlist: Netlist, part: Part) -> list[Source]:
    """Parts of nets that instances or inputs of the whole drive."""
    if part.net not in netlist.wired:
        return [Source(part.net, part.start, part.width)]
    found, place = [], 0
    for piece in netlist.wired[part.net]:
        low, high = max(part.start, place), min(part.start + part.width, place + piece.width)
        if low < high:
            inner = Part(piece.net, piece.start + low - place, high - low)
            found += _resolve(netlist, inner)
        place += piece.width
    return found


def _groups(
    netlist: Netlist,
    classes: list[CxxClass],
    names: list[str],
    sources: list[dict[str, list[Source]]],
) -> list[Group]:
    """Put instances on levels: above all from which they read what is not registered."""
    drivers = netlist.drivers()
    late = {
        net for net, (number, port) in drivers.items() if not classes[number].ports[port].registered
    }
    below = []
    for made, inputs in zip(classes, sources, strict=True):
        nets = {
            piece.net for port, parts in inputs.items() if port in made.ports for piece in parts
        }
        below.append({drivers[net][0] for net in nets & late})
    order = TopologicalSorter(dict(enumerate(below)))
    try:
        order.prepare()
    except CycleError as error:
        name = netlist.instances[min(error.args[1])].name
        raise WorkFailed(f"Instance {name} must not depend on itself without a register") from None
    groups: list[Group] = []
    while order.is_active():
        level = order.get_ready()
        order.done(*level)
        found = defaultdict(list)
        for k in sorted(level):
            found[netlist.instances[k].node is not None, names[k]].append(k)
        groups += [Group(key[1], found[key]) for key in sorted(found)]
    return groups


def _columns(made: CxxClass, rows: list[dict[str, list[Source]]]) -> list[Column]:
    """How the inputs of a class are put together, given the sources of its instances."""
    columns = []
    for port, known in made.ports.items():
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


def _banks(netlist: Netlist, module: str, made: CxxClass) -> dict[str, str]:
    """The members that are banks of an endpoint; a single word may be part of another."""
    if netlist.roles.get(module) is not Role.ENDPOINT:
        return {}
    leaf = netlist.modules[module]()
    assert isinstance(leaf, Endpoint)
    banks = {(bank.name, bank.width, bank.depth): bank.name
             for banks in leaf.banks.values() for bank in banks}  # fmt: skip
    return {name: made.banks[key] for key, name in banks.items() if key in made.banks}


def _class_text(number: int, made: CxxClass, columns: list[Column], banks: Iterable[str]) -> str:
    """The C++ of a class, and what lets the model work with it."""
    puts, row, shared = [], 0, 0
    for column in columns:
        place = f"shared[{shared}]" if column.shared else f"row[{row}]"
        shift = f"row[{row + 1}]" if column.shift is None else column.shift
        puts.append(
            f"        model::put<{column.at}, {column.width}>"
            f"(d.{made.ports[column.port].member}, model::at({place}), {shift});"
        )
        shared += column.shared
        row += 0 if column.shared else 1 + (column.shift is None)
    if made.rom:
        puts.append(f"        d.rows = model::at(row[{row}]); d.depth = row[{row + 1}];")
        row += 2
    values = [
        f"        case {k}: return d.{port.member}{'.curr' if port.registered else ''}.data;"
        for k, port in enumerate(made.outputs.values())
    ]
    places = [
        f"        case {k}: return model::bank(d.{member}, copy);" for k, member in enumerate(banks)
    ]
    clock = "d.p_clk = value<1>{1u}; d.prev_p_clk = value<1>{edge ? 0u : 1u};"
    reset = "d.p_rst = value<1>{on ? 1u : 0u};" if "rst" in made.ports else ""
    return "\n".join([
        f"namespace class_{number} {{",
        made.text,
        "struct Glue {",
        f"    typedef {made.name} Design;",
        f"    enum {{ columns = {row} }};",
        "    static CXXRTL_ALWAYS_INLINE",
        "    void gather(Design &d, const model::Word *row, const model::Word *shared) {",
        *puts,
        "    }",
        f"    static void clock(Design &d, bool edge) {{ {clock if made.clocked else ''} }}",
        f"    static void reset(Design &d, bool on) {{ {reset} }}",
        "    static const uint32_t *output(Design &d, size_t port) {",
        "        switch (port) {",
        *values,
        "        }",
        "        return nullptr;",
        "    }",
        "    static uint32_t *bank(Design &d, size_t number, size_t copy) {",
        "        switch (number) {",
        *places,
        "        }",
        "        return nullptr;",
        "    }",
        "};",
        "}",
        'extern "C" __attribute__((visibility("default")))',
        f"const model::Class class_{number}_type =",
        f"    model::Describe<class_{number}::Glue>::value();",
        "",
    ])  # fmt: skip


def _units(texts: list[str]) -> list[str]:
    """Put classes together into a few texts to compile."""
    head = '#include <cxxrtl/cxxrtl.h>\n#include "model.h"\nusing namespace cxxrtl_yosys;\n'
    count = max(1, min(2, len(texts)), -(-sum(map(len, texts)) // UNIT))
    units = [head] * count
    for text in sorted(texts, key=len, reverse=True):
        smallest = min(range(count), key=lambda k: len(units[k]))
        units[smallest] += text
    return units
