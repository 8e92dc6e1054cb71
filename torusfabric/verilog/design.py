"""What the Verilog side hands on: module texts, and their structure as data."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..rtl.netlist import ROM
from ..toolchain.files import writable
from ..toolchain.folders import locked, made_folder
from ..toolchain.owned import owned_files, remove_owned, require_owned, write_owned
from ..toolchain.values import path_of
from .module_text import ModuleText, Structure
from .routers import RouterClass
from .top import RomContents

__all__ = ["MANIFEST", "TEXT", "Design", "PlainNames", "write_made"]

#: The file that lists the others.
MANIFEST = "manifest.json"

#: What writes the files.
MAKER = "verilog"

#: The name of the file of all modules.
TEXT = "fabric.v"

#: No name is a net unless it is declared, up to the end of the file.
NO_NETS, ANY_NETS = "`default_nettype none\n", "`default_nettype wire\n"


@dataclass(frozen=True)
class PlainNames:
    """What instances and nets of generate loops are called in text without these.

    Parameters
    ----------
    instances, nets : dict of str to str
        Scope and name there, as ``node.tx`` -> name with ``{}`` where the number stands.

    Examples
    --------
    >>> names = PlainNames({"node.router": "router_at_{}"}, {"node.tx": "tx_{}"})
    >>> names.instance("node[17].router.one"), names.net("node[17].tx"), names.net("busy")
    ('router_at_17', 'tx_17', 'busy')
    """

    instances: Mapping[str, str] = field(default_factory=dict)
    nets: Mapping[str, str] = field(default_factory=dict)

    def instance(self, name: str) -> str:
        """The name of an instance."""
        return _plain(name.removesuffix(".one"), self.instances)

    def net(self, name: str) -> str:
        """The name of a net."""
        return _plain(name, self.nets)


def _plain(name: str, patterns: Mapping[str, str]) -> str:
    """The name of what may be a member of a scope."""
    member = re.fullmatch(r"(\w+)\[(\d+)\]\.([\w.]+)", name)
    pattern = member and patterns.get(f"{member[1]}.{member[3]}")
    return pattern.format(member[2]) if member and pattern else name


@dataclass(frozen=True)
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
    instance_parts : dict of str to str
        What each instance in the top is: the part of the fabric, and of which node.
    comments : dict of str to str
        What is said above modules in the file, besides what their texts say.
    header : str
        Comment above the whole.
    files : dict of str to str
        Further files to be written beside the text.
    plain_names : PlainNames
        Of a compact text.
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
    instance_parts: dict[str, str] = field(default_factory=dict)
    comments: dict[str, str] = field(default_factory=dict)
    header: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    plain_names: PlainNames = field(default_factory=PlainNames)

    @classmethod
    def of(cls, modules: Mapping[str, ModuleText], top: str, **facts: Any) -> "Design":
        """A design of modules as they were written, with facts that have the names of fields."""
        return cls(
            modules={name: module.text for name, module in modules.items()},
            top=top,
            instances={name: m.children for name, m in modules.items() if m.children},
            structures={name: module.structure for name, module in modules.items()},
            inner=frozenset(name for name, module in modules.items() if module.inner),
            **facts,
        )

    @property
    def counted(self) -> list[str]:
        """The modules that count by themselves, children before parents; without the ROM."""
        return [name for name in self.modules if name != self.rom and name not in self.inner]

    def has(self, name: str) -> tuple[set[str], Counter[str]]:
        """The inner modules that a module has, with those inside these, and how often others."""
        inner, others = set[str](), Counter[str]()
        for child, times in self.instances.get(name, {}).items():
            if child not in self.inner:
                others[child] += times
                continue
            inside, more = self.has(child)
            inner |= {child} | inside
            others.update({each: count * times for each, count in more.items()})
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

    def routers(self, names: Iterable[str] | None = None) -> "Design":
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
        for name in files:
            writable(target / name, make=True)
        with locked(target):
            before = owned_files(target, MAKER)
            contents = {name: text.encode("utf-8") for name, text in files.items()}
            write_owned(target, MAKER, contents, force=force)
            remove_owned(target, MAKER, before - files.keys())


def write_made(make: Callable[[], Design], folder: str | Path, *, force: bool) -> Design:
    """Write a design that is made, which may take long, once it is known that it can be written."""
    with made_folder(folder):
        writable(Path(folder, TEXT))
        require_owned(Path(folder), MAKER, (TEXT, MANIFEST), force=force)
        design = make()
        design.write(folder, force=force)
    return design
