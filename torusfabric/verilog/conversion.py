"""From the components of a netlist to plain Verilog, one module at a time, by way of Yosys.

This is the one place that looks into what Yosys wrote: it cuts the text into modules, and notes the
ports and the children of each.
"""

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from amaranth.back import rtlil

from ..rtl.memories import LOOK_UP
from ..rtl.names import given_names
from ..rtl.netlist import ROM, Netlist
from ..rtl.shared_modules import SharedModule, shared_modules
from ..toolchain import tools
from ..toolchain.cache import Cache, digest
from ..toolchain.folders import work_folder
from .ecp5 import ECP5, ecp5_body

__all__ = ["ModuleText", "module_texts"]

#: Makes plain Verilog of RTLIL: one module a component, without traces of its source.
SCRIPT = """\
read_rtlil modules.il
proc -nomux -norom
memory_collect
setattr -mod -set keep_hierarchy 1 a:apart %m
setattr -unset apart a:apart
attrmap -remove generator -remove top -remove src -remove amaranth.hierarchy -remove init
attrmap -modattr -remove generator -remove top -remove src -remove amaranth.hierarchy
write_verilog modules.v
"""


#: Words of a memory that are set in one block.
BLOCK = 64

#: A module with its attributes.
MODULE = r"^(?:\(\*.*?\*\)\n)*module .*?^endmodule\n"

#: Zero as Yosys writes it: 32 bits are an integer.
ZERO = r"\d+'(?:h0+|d0)"


class ModuleText(NamedTuple):
    """A module as Verilog.

    Parameters
    ----------
    text : str
    ports : tuple of str
        The names of its ports.
    children : dict of str to int
        How many instances of which other modules it has.
    inner : bool
        Whether it counts as part of those that have instances of it.
    """

    text: str
    ports: tuple[str, ...]
    children: dict[str, int]
    inner: bool = False


def module_texts(netlist: Netlist, cache: Cache | None = None) -> dict[str, ModuleText]:
    """The text of each module of a netlist, children before their parents.

    Parameters
    ----------
    netlist : Netlist
    cache : Cache, optional
        What was converted before.
    """
    with given_names():
        il = "".join(
            rtlil.convert(make(), name=name, emit_src=False)
            for name, make in netlist.modules.items()
        )
        shared = shared_modules(il)
        il += "".join(_shared_il(each) for each in shared)
    key = digest("modules", il, SCRIPT, tools.version("yosys"))
    text = cache.get(key) if cache else None
    if text is None:
        text = _verilog(il) if il else ""
        if cache:
            cache.put(key, text)
    modules = _modules(text)
    modules = {each.name: _in_both_forms(each, modules.pop(each.name)) for each in shared} | modules
    if any(LOOK_UP in module.children for module in modules.values()):
        found = ModuleText(_written(LOOK_UP), ("address", "data"), {}, inner=True)
        modules = {LOOK_UP: found} | modules
    if any(instance.module == ROM for instance in netlist.instances):
        modules[ROM] = ModuleText(_written(ROM), ("clk", "address", "data"), {})
    return modules


def _written(name: str) -> str:
    """A module that is not made from RTLIL."""
    return Path(__file__).with_name(f"{name}.v").read_text(encoding="utf-8")


def _shared_il(meant: SharedModule) -> str:
    """A module that others share as RTLIL."""
    ports = meant.ports()
    il = rtlil.convert(meant.module(ports), name=meant.name, ports=ports, emit_src=False)
    return str(il)


def _in_both_forms(meant: SharedModule, module: ModuleText) -> ModuleText:
    """A module that others share, with another body for ECP5."""
    text, body = module.text, ecp5_body(meant)
    if body is not None:
        port = r"^  (?:input|output) .*\n"
        ports = "".join(re.findall(port, text, re.M))
        text = re.sub(port, "", text, flags=re.M)
        text = text.replace(");\n", f");\n{ports}`ifdef {ECP5}\n{body}\n`else\n", 1)
        text = text.replace("endmodule", "`endif\nendmodule")
    return module._replace(text=text, inner=True)


def _verilog(il: str) -> str:
    """RTLIL as plain Verilog."""
    with work_folder("verilog") as folder:
        (folder / "modules.il").write_text(il, encoding="utf-8")
        (folder / "script.ys").write_text(SCRIPT, encoding="utf-8")
        tools.run(
            "yosys",
            ["-q", "-s", "script.ys"],
            folder=folder,
            log="yosys.log",
            what="writing Verilog",
            makes=["modules.v"],
        )
        text = (folder / "modules.v").read_text(encoding="utf-8")
    if not text.endswith("endmodule\n"):
        raise tools.cut_off("yosys", "modules.v")
    # A component inside a component becomes a module whose name has a dot in it.
    text = re.sub(r"\\(\w+(?:\.\w+)+) ", lambda name: name[1].replace(".", "_"), text)
    # Verilator frowns on values in declarations of registers, not on those of initial blocks.
    # Processes that must run once at the start are triggered by a register that never changes.
    text = re.sub(r"\\\$auto\$\S+", "unused_trigger", text)
    return re.sub(
        r"^  reg (.*?)(\S+ ?) = (\S+);$", r"  reg \1\2;\n  initial \2 = \3;", text, flags=re.M
    )


def _modules(text: str) -> dict[str, ModuleText]:
    """Cut a text into modules, children before their parents."""
    text = _alike_once(text)
    texts: dict[str, tuple[str, tuple[str, ...]]] = {}
    for module in reversed(re.findall(MODULE, text, re.M | re.S)):
        head = module[module.index("module ") :].partition(";")[0]
        name, *ports = re.findall(r"\w+", head.removeprefix("module"))
        texts[name] = (_in_blocks(_short_memories(module)), tuple(ports))
    modules = {}
    known = "|".join([*texts, LOOK_UP])
    parameters = r"#\(\n.*?\n  \) "
    child = re.compile(rf"^  ({known}) (?:{parameters})?\S+ +\(", re.M | re.S)
    for name, (body, names) in texts.items():
        modules[name] = ModuleText(body, names, dict(Counter(child.findall(body))))
    return modules


def _in_blocks(text: str) -> str:
    """Give long lists of words of a memory several blocks: Yosys reads one in quadratic time."""

    def split(match: re.Match[str]) -> str:
        words = match["words"].splitlines(keepends=True)
        blocks = (words[k : k + BLOCK] for k in range(0, len(words), BLOCK))
        return "".join(f"  initial begin\n{''.join(block)}  end\n" for block in blocks)

    words = r"(?P<words>(?:    \S+ ?\[\d+\] = \d+'h[0-9a-f]+;\n)+)"
    return re.sub(rf"^  initial begin\n{words}  end\n", split, text, flags=re.M)


def _alike_once(text: str) -> str:
    """Let registers that synthesis keeps apart be instances of one module for each form of it."""
    used = set(re.findall(r"^  (\w+) \w+ \(", text, re.M))
    shared: dict[str, str] = {}
    module_of: dict[str, str] = {}
    parts_of: dict[str, dict[str, str]] = {}

    def without(match: re.Match[str]) -> str:
        module = match[0]
        name = module[module.index("module ") :].split("(")[0].split()[1]
        if not module.startswith("(*") or name not in used:
            return module  # what has no parent here is a module of the netlist
        parts = {port: f"part_{k}" for k, port in enumerate(_parts(module))}
        nameless = _in_order(_renamed(module.replace(f"module {name}(", "module ("), parts))
        module_of[name] = shared.setdefault(nameless, f"register_{len(shared)}")
        parts_of[name] = parts
        return ""

    def instead(match: re.Match[str]) -> str:
        name, ports = match.groups()
        if name not in module_of:
            return match[0]
        return f"  {module_of[name]}" + _renamed(ports, parts_of[name], before=r"\.")

    text = re.sub(MODULE, without, text, flags=re.M | re.S)
    text = re.sub(r"^  (\w+)( \w+ \(.*?\);)$", instead, text, flags=re.M | re.S)
    # Behind all that have instances of them.
    modules = (body.replace("module (", f"module {name}(") for body, name in shared.items())
    return "\n".join([text, *modules])


def _parts(module: str) -> list[str]:
    """The names that Yosys gives to what a register holds, in the order in which it does."""
    (held,) = re.findall(r"register <= (.*?);", module)
    return list(dict.fromkeys(re.findall(r"\\port\S+ ", held)))


def _renamed(text: str, names: Mapping[str, str], before: str = "") -> str:
    """A text with other names for some escaped ones."""
    for old, new in names.items():
        text = re.sub(f"({before}){re.escape(old)}", rf"\g<1>{new}", text)
    return text


def _in_order(module: str) -> str:
    """A module whose ports and declarations are in alphabetical order."""
    ((head, ports, body),) = re.findall(r"\A(.*?module \()(.*?)(\);.*)\Z", module, re.S)
    declared = r"  (?:input|output|wire|reg)\b.*?;\n"
    rest = re.sub(declared, "", body)
    first, _, last = rest.partition("\n")
    lines = "".join(sorted(re.findall(declared, body)))
    names = ", ".join(sorted(name.strip() for name in ports.split(",")))
    return f"{head}{names}{first}\n{lines}{last}"


def _short_memories(text: str) -> str:
    """Write memories that start as zeros with a loop instead of a line a word."""

    def loop(match: re.Match[str]) -> str:
        name, last, zero = match["name"], match["last"], match["zero"]
        label = "init_" + re.sub(r"\W", "_", name.strip("\\ "))
        return (
            f"  initial begin : {label}\n    integer k;\n"
            f"    for (k = 0; k <= {last}; k = k + 1) {name}[k] = {zero};\n  end\n"
        )

    word = rf"    (?P<name>\S+ ?)\[(?P<last>\d+)\] = (?P<zero>{ZERO});\n"
    return re.sub(
        rf"  initial begin\n(?:{word})+  end\n",
        lambda m: loop(m) if len({*re.findall(f"= ({ZERO});", m[0])}) == 1 else m[0],
        text,
    )
