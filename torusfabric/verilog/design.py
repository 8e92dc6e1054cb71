"""What the Verilog side hands on: module texts, and their structure and routers as data."""

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
from ..toolchain.files import writable
from ..toolchain.folders import locked, made_folder
from ..toolchain.owned import require_owned, write_owned
from ..toolchain.public import public_class
from ..toolchain.values import path_of
from .module_text import ModuleText, Structure
from .top import RomContents

__all__ = ["MANIFEST", "TEXT", "Design", "RouterClass", "RouterShape", "member_name",
           "router_classes", "write_made"]  # fmt: skip

#: Out-ports of a router, and its inputs that bring data with the part of a report they begin.
OUTPORTS = ("tx",)
INPORTS = {"rx": "crossbar", "inject": "injection"}


@dataclass(frozen=True)
class RouterShape:
    """The outer form of a router, whatever it selects.

    Parameters
    ----------
    own_words : int
        Words that are chosen among beside those of in-ports: of memories, sums, and those of the
        registers behind in-ports; at least one.
    settings : int
        Rows of the ROM of its settings; 0 where its select registers are given from outside.
    """

    ports: int
    own_words: int
    width: int
    settings: int


@dataclass(frozen=True)
class RouterClass:
    """Nodes with the same router.

    Parameters
    ----------
    nodes : int
        How many.
    outports : tuple of str
        The output ports that drive links. Where given, the report has the cost of each out-port
        bit; other outputs (delivery to the node) are not counted as such.
    inports : dict of str to str
        Input port that brings data -> part of the report for the tables that read it first. Where
        given, the report shows where the tables go.
    shape : RouterShape, optional
        Its outer form. Where given, the report compares it with a full crossbar.
    settings : dict of str to dict
        Input port -> {contents of the ROMs that drive it: number of nodes}; only inputs that ROMs
        drive.
    """

    nodes: int
    outports: tuple[str, ...] = ()
    inports: Mapping[str, str] = field(default_factory=dict)
    shape: RouterShape | None = None
    settings: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


def router_classes(fabric: Fabric, contents: Mapping[str, RomContents]) -> dict[str, RouterClass]:
    """The class of each router module of a fabric, given the contents of ROMs by their names."""
    netlist = fabric.netlist
    routers = [array for array in netlist.arrays if array.role is Role.ROUTER]
    roms = _contents_of_nets(netlist, {value: name for name, value in contents.items()})
    read = {part.net for array in routers for part in _table_parts(array)
            if isinstance(part, Slice)}  # fmt: skip
    names = {name for net in read & roms.keys() for name in roms[net].values()}
    rows = max((len(contents[name].rows) for name in names), default=0)
    return {
        fabric.prefix + array.module: RouterClass(
            nodes=len(array),
            outports=OUTPORTS,
            # One that only forwards injects nothing.
            inports={port: part for port, part in INPORTS.items() if port in array.inputs},
            # Of the ROM in front of it; without one the sequencer gives the select bits.
            shape=_shape(fabric, array, rows if _table_parts(array) else 0),
            settings=dict(_settings(array, roms)),
        )
        for array in routers
    }


def _contents_of_nets(
    netlist: Netlist, names: Mapping[RomContents, str]
) -> dict[str, dict[int, str]]:
    """The name of what each ROM holds, by the net that it drives and the number in its name."""
    found: dict[str, dict[int, str]] = defaultdict(dict)
    for array in netlist.arrays:
        if array.roms is not None:
            each = [names[RomContents(rows, array.roms.width)] for rows in array.roms.contents]
            net, _ = array.outputs["data"]
            for k, number in zip(array.index.tolist(), array.roms.which.tolist(), strict=True):
                found[net][k] = each[number]
    return found


def _settings(
    router: Array, roms: Mapping[str, Mapping[int, str]]
) -> Iterator[tuple[str, dict[str, int]]]:
    """The inputs that ROMs drive, and how often each of their contents does."""
    for port, parts in router.inputs.items():
        nets = {part.net for part in parts if isinstance(part, Slice)} & roms.keys()
        if nets:
            each = (roms[net][k] for net in nets for k in router.index.tolist())
            yield port, dict(Counter(each))


def _shape(fabric: Fabric, array: Array, settings: int) -> RouterShape:
    """The outer form of a router."""
    ports = array.outputs["tx"][1] // fabric.width
    router: Any = fabric.netlist.modules[array.module]()
    return RouterShape(ports, max(1, router.own_words), fabric.width, settings)


def _table_parts(router: Array) -> list[Source]:
    """Return what drives the inputs of a router that come from tables at the node."""
    return [part for port, parts in router.inputs.items() if port.startswith(("setting", "table"))
            for part in parts]  # fmt: skip


#: The file that lists the others.
MANIFEST = "manifest.json"

#: What writes the files.
MAKER = "verilog"

#: The name of the file of all modules.
TEXT = "fabric.v"

#: No name is a net unless it is declared, up to the end of the file.
NO_NETS, ANY_NETS = "`default_nettype none\n", "`default_nettype wire\n"


def member_name(path: str, patterns: Mapping[str, str]) -> str | None:
    """Return what patterns say of an instance in the top, or None.

    Parameters
    ----------
    path : str
        Its name in the text, with the blocks around it.
    patterns : dict of str to str
        Text for each path, with ``[]`` and ``{}`` where the number of the member of a loop stands.

    Examples
    --------
    >>> names = {"node[].router": "router_at_{}", "the_host": "host"}
    >>> member_name("node[17].router.one", names), member_name("the_host", names)
    ('router_at_17', 'host')
    """
    number = re.search(r"(?<=\[)\d+(?=\])", path)
    pattern = re.sub(r"(?<=\[)\d+(?=\])", "", path.removesuffix(".one"), count=1)
    found = patterns.get(pattern)
    return found and found.format(number[0] if number else "")


@public_class
@dataclass(frozen=True, repr=False)
class Design:
    """A design as Verilog text, one module at a time.

    Parameters
    ----------
    modules : dict of str to str
        Module name -> Verilog text of that one module, children before parents; each is
        self-contained apart from instances of other modules of the dict.
    top : str
        The name of the outermost module.
    instances : dict of str to dict
        Module -> {child module, or name of contents: how many instances}; modules without children
        may be left out.
    structures : dict of str to Structure
        Module -> what it is made of: its ports, signals and memories, by their names in the text.
    classes : dict of str to RouterClass
        Router module -> what a report says of it.
    parts : dict of str to str
        Module, or name of contents -> the part of the fabric that it belongs to; routers may be
        left out.
    contents : dict of str to RomContents
        The different contents of the ROM module; each has the name of the first instance with it.
    interface : str
        That of the top: ``host`` or ``core``; empty where it is neither.
    prefix : str
        What the names of all modules begin with.
    inner : frozenset of str
        Modules that count as part of those which have instances of them.
    instance_names, net_names, instance_parts : dict of str to str
        Names in the netlist of the instances and nets of the top, and the part of the fabric that
        each instance is; see `member_name`.
    comments : dict of str to str
        What is said above modules in the file, besides what their texts say.
    header : str
        Comment above the whole.
    files : dict of str to str
        Further files to be written beside the text.
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
    inner: frozenset[str] = frozenset()
    instance_names: dict[str, str] = field(default_factory=dict)
    net_names: dict[str, str] = field(default_factory=dict)
    instance_parts: dict[str, str] = field(default_factory=dict)
    comments: dict[str, str] = field(default_factory=dict)
    header: str = ""
    files: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, modules: Mapping[str, ModuleText], top: str, **facts: Any) -> Design:
        """A design of modules as they were written, with facts that have the names of fields."""
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
    def counted(self) -> list[str]:
        """The modules that count by themselves, children before parents; without the ROM."""
        return [name for name in self.modules if name != self.rom and name not in self.inner]

    def has(self, name: str) -> tuple[set[str], dict[str, int]]:
        """The inner modules that a module has, with those inside these, and how often others."""
        inner, others = set[str](), dict[str, int]()
        for child, times in self.instances.get(name, {}).items():
            if child in self.inner:
                # Inside these there are none but inner ones.
                inner |= {child} | self.has(child)[0]
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
        return "\n".join([self.header + NO_NETS, *texts, ANY_NETS])

    @property
    def rom(self) -> str:
        """The name of the module of all ROMs."""
        return self.prefix + ROM

    @property
    def file_names(self) -> list[str]:
        """The files that `write` writes."""
        return [TEXT, *self.files]

    def routers(self, names: Iterable[str] | None = None) -> Design:
        """The routers, or some of them, with what is inside and in front of them.

        There is no top; the last module stands for it.

        Parameters
        ----------
        names : iterable of str, optional
            The modules of the routers.
        """
        chosen = set(self.classes if names is None else names)
        wanted = set(chosen)
        for name in reversed(self.modules):  # parents come before their children
            if name in wanted:
                wanted.update(self.instances.get(name, {}))
        classes = {name: router for name, router in self.classes.items() if name in wanted}
        used = {rom for name in chosen for roms in self.classes[name].settings.values()
                for rom in roms}  # fmt: skip
        modules = {
            name: text
            for name, text in self.modules.items()
            if name in wanted or (name == self.rom and used)
        }
        return Design(
            modules,
            next(name for name in reversed(modules) if name != self.rom),
            {name: children for name, children in self.instances.items() if name in wanted},
            {name: self.structures[name] for name in modules if name in self.structures},
            classes,
            contents={name: self.contents[name] for name in self.contents if name in used},
            prefix=self.prefix,
            inner=self.inner & wanted,
        )

    def write(self, folder: str | Path, *, force: bool = False) -> None:
        """Write ``fabric.v`` and what belongs to it into a folder, which is made if need be.

        What an earlier design left in the folder is removed.

        Parameters
        ----------
        force : bool
            Whether files that no design wrote, or that were changed, are replaced.

        Raises
        ------
        InputError
            If there are such files and may not be replaced, or the folder cannot be written; no
            file is written if that is known beforehand.
        """
        target, files = Path(path_of("Folder", folder)), {TEXT: self.text, **self.files}
        require_owned(target, MAKER, files, force=force)
        contents = {name: text.encode("utf-8") for name, text in files.items()}
        with made_folder(target), locked(target):
            write_owned(target, MAKER, contents, seal=MANIFEST, force=force)


def write_made(make: Callable[[], Design], folder: str | Path, *, force: bool) -> Design:
    """Write a design that is made, which may take long, once it is known that it can be written."""
    with made_folder(folder):
        writable(Path(folder, TEXT))
        require_owned(Path(folder), MAKER, (TEXT, MANIFEST), force=force)
        design = make()
        design.write(folder, force=force)
    return design
