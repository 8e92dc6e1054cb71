"""The result of `emit`: a `Design` holds all modules as text, and their structure as data.

Users of the Verilog are `Design.write` and the proof. Users of the data are synthesis reports,
which count instances and take routers apart, and the proof, which translates names of the Verilog
into names of the netlist.

A *router class* is a router module with its nodes. *Inner* modules, multiplexers for example, count
in reports as part of the modules that have instances of them.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..rtl.arrays import Array, Role, Slice, Source
from ..rtl.fabric import Fabric
from ..rtl.netlist import ROM, Netlist
from ..toolchain.files import require_writable
from ..toolchain.folders import hold_lock, make_folder
from ..toolchain.owned import require_replaceable_files, write_file_set
from ..toolchain.public import public_class
from ..toolchain.values import require_path
from .module_text import AUTO, ModuleText, Structure
from .top import RomContents

__all__ = ["MANIFEST", "VERILOG_FILE", "Design", "RouterClass", "RouterShape", "translate_path",
           "count_instances", "router_classes", "make_and_write"]  # fmt: skip

#: Outputs of a router that drive links.
LINK_OUTPUTS = ("tx",)

#: Data input of a router -> purpose, in a report, of the LUTs that read the input directly.
INPUT_PURPOSES = {"rx": "crossbar", "inject": "injection"}


@dataclass(frozen=True)
class RouterShape:
    """The sizes of a router that decide how many LUTs it takes.

    Parameters
    ----------
    ports : int
        Out-ports that drive links.
    own_words : int
        Number of words, besides those of in-ports, that its multiplexers select: words of memories,
        sums, and delayed words of in-ports. At least 1.
    width : int
        Bits of a word.
    settings : int
        Rows of the ROM with the select bits of the router; 0 if the sequencer sends the select
        bits.
    """

    ports: int
    own_words: int
    width: int
    settings: int


@dataclass(frozen=True)
class RouterClass:
    """A router module and its nodes, with the facts that a report on its size needs.

    Parameters
    ----------
    nodes : int
        Number of nodes with this router module.
    outports : tuple of str
        Outputs that drive links. A report shows the LUTs of the router per bit of these outputs;
        outputs that deliver words to the node do not count. Empty if the report shows no such
        number.
    inports : dict of str to str
        Data input -> name, in a report, for the LUTs that read the input: ``{"rx": "crossbar"}``.
        Empty if the report does not split LUTs by purpose.
    shape : RouterShape, optional
        Sizes from which the report computes the LUTs of a crossbar that connects all inputs to all
        outputs; None for no comparison.
    settings : dict of str to dict
        Input that ROMs drive -> {name of ROM contents: number of nodes with these contents}.
    """

    nodes: int
    outports: tuple[str, ...] = ()
    inports: Mapping[str, str] = field(default_factory=dict)
    shape: RouterShape | None = None
    settings: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


def router_classes(fabric: Fabric, contents: Mapping[str, RomContents]) -> dict[str, RouterClass]:
    """Return a `RouterClass` for each router module of a fabric, by the name of the module.

    Parameters
    ----------
    contents : dict of str to RomContents
        Name -> contents, for all different contents of ROMs, from `top.distinct_rom_contents`.
    """
    netlist = fabric.netlist
    routers = [array for array in netlist.arrays if array.role is Role.ROUTER]
    roms = _rom_contents_of_nets(netlist, {value: name for name, value in contents.items()})
    read = {part.net for array in routers for part in _table_sources(array)
            if isinstance(part, Slice)}  # fmt: skip
    names = {name for net in read & roms.keys() for name in roms[net].values()}
    rows = max((len(contents[name].rows) for name in names), default=0)
    return {
        fabric.prefix + array.module: RouterClass(
            nodes=len(array),
            outports=LINK_OUTPUTS,
            # A router that only forwards has no input `inject`.
            inports={port: part for port, part in INPUT_PURPOSES.items() if port in array.inputs},
            # Without a ROM in front of the router, the sequencer drives its select registers.
            shape=_router_shape(fabric, array, rows if _table_sources(array) else 0),
            settings=dict(_rom_driven_inputs(array, roms)),
        )
        for array in routers
    }


def _rom_contents_of_nets(
    netlist: Netlist, names: Mapping[RomContents, str]
) -> dict[str, dict[int, str]]:
    """Return the name of the contents of the ROM that drives each net.

    If node 5 has a ROM with the contents ``rom_a``, and it drives the net ``setting_5``, the result
    is ``{"setting_{}": {5: "rom_a"}}``.

    Parameters
    ----------
    netlist : Netlist
        Netlist of the fabric.
    names : dict of RomContents to str
        Contents of a ROM -> name of these contents.

    Returns
    -------
    dict of str to (dict of int to str)
        Name of the nets, with ``{}`` for a number -> {number: name of the contents}.
    """
    found: dict[str, dict[int, str]] = defaultdict(dict)
    for array in netlist.arrays:
        if array.roms is not None:
            each = [names[RomContents(rows, array.roms.width)] for rows in array.roms.contents]
            net, _ = array.outputs["data"]
            for k, number in zip(array.index.tolist(), array.roms.which.tolist(), strict=True):
                found[net][k] = each[number]
    return found


def _rom_driven_inputs(
    router: Array, roms: Mapping[str, Mapping[int, str]]
) -> Iterator[tuple[str, dict[str, int]]]:
    """Yield each input of a router module that ROMs drive, and the contents of these ROMs.

    They are the items of `RouterClass.settings`.

    Parameters
    ----------
    router : Array
        All instances of the router module.
    roms : dict of str to (dict of int to str)
        The result of `_rom_contents_of_nets`.

    Yields
    ------
    port : str
        Input port of the router that ROMs drive.
    contents : dict of str to int
        Name of ROM contents -> number of nodes whose ROM has them.
    """
    for port, parts in router.inputs.items():
        nets = {part.net for part in parts if isinstance(part, Slice)} & roms.keys()
        if nets:
            each = (roms[net][k] for net in nets for k in router.index.tolist())
            yield port, dict(Counter(each))


def _router_shape(fabric: Fabric, array: Array, settings: int) -> RouterShape:
    """Return the sizes of the routers in `array`, all instances of one module.

    `settings` is the number of rows of the ROM with the select bits, 0 without a ROM.
    """
    ports = array.outputs["tx"][1] // fabric.width
    router: Any = fabric.netlist.modules[array.module]()
    return RouterShape(ports, max(1, router.n_own_words), fabric.width, settings)


def _table_sources(router: Array) -> list[Source]:
    """Return the nets by which ROMs or RAMs set the multiplexers of a router, as a list of sources.

    They drive the inputs whose names begin with ``setting`` or ``table``. The list is empty for a
    router that gets its select bits from the sequencer. `router` is all instances of the router
    module.
    """
    return [part for port, parts in router.inputs.items() if port.startswith(("setting", "table"))
            for part in parts]  # fmt: skip


#: File that lists the others.
MANIFEST = "manifest.json"

#: Name of the maker in the record of the files that it owns; see `write_file_set`.
MAKER = "verilog"

#: File of all modules.
VERILOG_FILE = "fabric.v"

#: Directives around the Verilog: within it, no undeclared name becomes a net.
NETTYPE_NONE, NETTYPE_WIRE = "`default_nettype none\n", "`default_nettype wire\n"


def translate_path(path: str, patterns: Mapping[str, str]) -> str | None:
    """Translate the name of an instance or net in the Verilog top, such as to that in the netlist.

    Parameters
    ----------
    path : str
        Name in the Verilog, with the names of the generate blocks around it.
    patterns : dict of str to str
        Name in the Verilog, with ``[]`` for the index of a generate loop -> other name, with ``{}``
        for the index. The fields `instance_names`, `net_names` and `instance_parts` of `Design` are
        such dictionaries.

    Returns
    -------
    str or None
        The translation; None if `patterns` has none.

    Examples
    --------
    >>> names = {"node[].router": "router_at_{}", "the_host": "host"}
    >>> translate_path("node[17].router.one", names), translate_path("the_host", names)
    ('router_at_17', 'host')
    """
    number = re.search(r"(?<=\[)\d+(?=\])", path)
    pattern = re.sub(r"(?<=\[)\d+(?=\])", "", path.removesuffix(".one"), count=1)
    found = patterns.get(pattern)
    return found and found.format(number[0] if number else "")


@public_class
@dataclass(frozen=True, repr=False)
class Design:
    """A design as Verilog, one module at a time, with facts about the modules.

    Parameters
    ----------
    modules : dict of str to str
        Module name -> Verilog of that one module, children before parents. The Verilog is
        self-contained apart from instances of other modules of the dict.
    top : str
        Name of the outermost module.
    instances : dict of str to dict
        Module -> {child module, or name of ROM contents: number of instances}. Modules without
        children may be left out.
    structures : dict of str to Structure
        Module -> its ports, signals and memories, by their names in the Verilog.
    classes : dict of str to RouterClass
        Router module -> its nodes and sizes, for reports.
    parts : dict of str to str
        Module, or name of ROM contents -> the part of the fabric that it belongs to, a value of
        `Role`. Routers may be left out.
    contents : dict of str to RomContents
        Name -> contents, for all different contents of ROMs. The name is that of the first ROM with
        these contents; all ROMs are instances of one module.
    interface : str
        Interface of the top: ``host`` or ``core``; empty for any other module.
    prefix : str
        Beginning of the names of all modules.
    ram : str
        Memory rule: the kind of RAM of each memory.
    inner : frozenset of str
        Modules, such as multiplexers, that reports count as part of the modules around them.
    instance_names, net_names, instance_parts : dict of str to str
        Patterns for `translate_path`: instances and nets of the top -> their names in the netlist,
        and instances -> the part of the fabric.
    comments : dict of str to str
        Module -> comment above the module in the file.
    header : str
        Comment at the beginning of the file.
    files : dict of str to str
        Name -> text of each further file.
    """

    modules: dict[str, str]
    top: str
    instances: dict[str, dict[str, int]]
    structures: Mapping[str, Structure] = field(default_factory=dict)
    classes: Mapping[str, RouterClass] = field(default_factory=dict)
    parts: dict[str, str] = field(default_factory=dict)
    contents: dict[str, RomContents] = field(default_factory=dict)
    interface: str = ""
    prefix: str = ""
    ram: str = AUTO
    inner: frozenset[str] = frozenset()
    instance_names: dict[str, str] = field(default_factory=dict)
    net_names: dict[str, str] = field(default_factory=dict)
    instance_parts: dict[str, str] = field(default_factory=dict)
    comments: dict[str, str] = field(default_factory=dict)
    header: str = ""
    files: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_modules(cls, modules: Mapping[str, ModuleText], top: str, **facts: Any) -> Design:
        """Return a design of some modules that are already converted to Verilog.

        Parameters
        ----------
        modules : dict of str to ModuleText
            All modules with the top, children before parents.
        top : str
            Name of the top.
        **facts
            Fields of the design that do not follow from `modules`.
        """
        return cls(
            modules={name: module.text for name, module in modules.items()},
            top=top,
            instances={name: m.children for name, m in modules.items() if m.children},
            structures={name: module.structure for name, module in modules.items()},
            inner=frozenset(name for name, module in modules.items() if module.inner),
            **facts,
        )

    def __repr__(self) -> str:
        return f"<Design {self.top}: {len(self.modules)} modules, {len(self.files)} more files>"

    @property
    def counted_modules(self) -> list[str]:
        """Modules that have a line of their own in reports, children before parents.

        The ROM module and the inner modules (parts of other modules, such as multiplexers) have
        none.
        """
        return [name for name in self.modules if name != self.rom_module and name not in self.inner]

    def children_of(self, name: str) -> tuple[set[str], dict[str, int]]:
        """Return the inner modules inside module `name`, and its other children.

        Inner modules, such as multiplexers, count in reports as part of the module around them.

        Returns
        -------
        inner : set of str
            Inner modules inside the module, at any depth.
        others : dict of str to int
            Other children -> number of their instances in the module.
        """
        inner, others = set[str](), dict[str, int]()
        for child, times in self.instances.get(name, {}).items():
            if child in self.inner:
                # An inner module has only inner modules inside.
                inner |= {child} | self.children_of(child)[0]
            else:
                others[child] = times
        return inner, others

    @property
    def text(self) -> str:
        """All modules as one file, each before its children."""
        texts = (
            f"// {self.comments[name]}\n{text}" if name in self.comments else text
            for name, text in reversed(self.modules.items())
        )
        return "\n".join([self.header + NETTYPE_NONE, *texts, NETTYPE_WIRE])

    @property
    def rom_module(self) -> str:
        """Name of the general ROM module, of which all ROMs of the design are instances."""
        return self.prefix + ROM

    @property
    def file_names(self) -> list[str]:
        """Names of the files that `write` writes."""
        return [VERILOG_FILE, *self.files]

    def routers(self, names: Iterable[str] | None = None) -> Design:
        """Return a design of router modules, with the modules inside of them and their ROMs.

        The result has no top; the field `top` is the name of the last module.

        Parameters
        ----------
        names : iterable of str, optional
            Router modules to keep; all by default.
        """
        chosen = set(self.classes if names is None else names)
        wanted = set(chosen)
        for name in reversed(self.modules):  # so that parents come before their children
            if name in wanted:
                wanted.update(self.instances.get(name, {}))
        classes = {name: router for name, router in self.classes.items() if name in wanted}
        used = {rom for name in chosen for roms in self.classes[name].settings.values()
                for rom in roms}  # fmt: skip
        modules = {
            name: text
            for name, text in self.modules.items()
            if name in wanted or (name == self.rom_module and used)
        }
        return Design(
            modules,
            next(name for name in reversed(modules) if name != self.rom_module),
            {name: children for name, children in self.instances.items() if name in wanted},
            {name: self.structures[name] for name in modules if name in self.structures},
            classes,
            contents={name: self.contents[name] for name in self.contents if name in used},
            prefix=self.prefix,
            inner=self.inner & wanted,
        )

    def write(self, folder: str | Path, *, force: bool = False) -> None:
        """Write ``fabric.v`` and all other files into a folder; remove those of an earlier design.

        Parameters
        ----------
        force : bool
            True to replace files that no design wrote, or that were changed since.

        Raises
        ------
        InputError
            If the folder holds such files and `force` is false, or cannot be written. As far as
            this is known beforehand, no file is written.
        """
        target, files = (
            Path(require_path("Folder", folder)),
            {VERILOG_FILE: self.text, **self.files},
        )
        require_replaceable_files(target, MAKER, files, force=force)
        contents = {name: text.encode("utf-8") for name, text in files.items()}
        with make_folder(target), hold_lock(target):
            write_file_set(target, MAKER, contents, seal=MANIFEST, force=force)


def make_and_write(make: Callable[[], Design], folder: str | Path, *, force: bool) -> Design:
    """Call `make` to build a design, and write it into a folder; check the folder before.

    With `force`, files that another program wrote may be replaced. Why the check comes first: it
    takes long to build a large design, and an error about the folder should come before that.
    """
    with make_folder(folder):
        require_writable(Path(folder, VERILOG_FILE))
        require_replaceable_files(Path(folder), MAKER, (VERILOG_FILE, MANIFEST), force=force)
        design = make()
        design.write(folder, force=force)
    return design


def count_instances(design: Design) -> dict[str, int]:
    """Return the number of instances of each module in `design`, by name.

    ROMs are counted by the name of their contents, since all are instances of one module.
    """
    times = {design.top: 1}
    for name in reversed(design.modules):  # parents come before their children
        for child, count in design.instances.get(name, {}).items():
            times[child] = times.get(child, 0) + count * times.get(name, 0)
    return times
