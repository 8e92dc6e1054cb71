"""Verilog of a fabric on several boards: a top for each kind of board, and a bench of the whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from ...contract.interface import Bench
from ...rtl.netlist import Netlist, Role
from ...verilog.design import MANIFEST, TEXT, Design, write_made
from ...verilog.manifest import as_json, bench_files, manifest, port_facts
from ...verilog.module_text import MemoryRule, ModuleText
from ...verilog.syntax import range_of
from ...verilog.text import header, module_texts
from ...verilog.top import RomContents, TopText, contents_of, instance_counts
from ..host.interface import SOURCES
from .hardware import BoardSystem
from .hardware.ports import LINK_PORTS
from .hardware.system import link_port

__all__ = ["BoardKind", "board_kinds", "emit_boards", "write"]

#: The module that connects all boards in the bench.
WHOLE = "boards"

#: The files of the bench that others have not.
FILES: Mapping[str, str | Path] = {
    "fabric_port.py": Path(__file__).parent / "bench" / "files" / "fabric_port.py",
    "host_port.py": SOURCES / "host.py",
    "direct_port.py": "direct_port.py",
}


def write(
    system: BoardSystem,
    choices: Mapping[str, Any],
    folder: str | Path,
    *,
    command: str,
    force: bool = False,
) -> Design:
    """Write ``fabric.v``, ``manifest.json`` and a bench into a folder; see `verilog.write`."""
    make = lambda: emit_boards(system, command=command, ram=choices["ram"])
    return write_made(make, folder, force=force)


def emit_boards(
    system: BoardSystem, *, command: str = "torusfabric verilog", ram: str = "auto"
) -> Design:
    """The Verilog of all boards of a fabric, with all files that go with it.

    Raises
    ------
    InputError
        If there is no such rule for memories.

    Examples
    --------
    >>> import torusfabric as tf
    >>> from torusfabric.topology.boards import Boards
    >>> ring = tf.Torus(4, link_latency=9)
    >>> fabric = tf.Fabric(tf.compile(tf.plan(ring, "allgather")), width=8)
    >>> text = emit_boards(BoardSystem(fabric, Boards.parse("2", ring))).text
    >>> "module board_0 (" in text, "module board_1 (" in text
    (True, False)
    """
    prefix, kinds = system.fabric.prefix, board_kinds(system, MemoryRule.parse(ram))
    modules = {name: text for kind in kinds for name, text in kind.texts.items()}
    contents: dict[str, RomContents] = {}
    for kind in kinds:
        # Beside others, contents of ROMs have names that begin with that of the board.
        own = {f"{kind.top}_{name}": rom for name, rom in contents_of(kind.netlist).items()}
        counts = instance_counts(kind.netlist, prefix, {rom: name for name, rom in own.items()})
        modules[kind.top] = ModuleText(kind.text.text(kind.top), kind.text.structure, counts)
        contents |= own
    return Design.of(
        modules,
        kinds[0].top,
        contents=contents,
        interface="boards",
        prefix=prefix,
        header=header(system.fabric, command, _about(system), crossings=True),
        files=_files(system, kinds, [*modules], command=command),
    )


class BoardKind(NamedTuple):
    """A kind of board.

    Parameters
    ----------
    boards : list of int
        The boards of the kind.
    texts : dict of str to ModuleText
        Its modules, by names that others have only for the same.
    """

    top: str
    boards: list[int]
    netlist: Netlist
    texts: Mapping[str, ModuleText]
    text: TopText


def board_kinds(system: BoardSystem, rule: MemoryRule) -> list[BoardKind]:
    """All kinds of boards."""
    prefix, known, kinds = system.fabric.prefix, dict[str, ModuleText](), list[BoardKind]()
    for number, netlist in enumerate(dict.fromkeys(system.netlists)):
        made = module_texts(netlist, prefix, rule)
        names = {
            name: f"{name}_{number}" if known.get(name, text).text != text.text else name
            for name, text in made.items()
        }
        own = {
            names[name]: text._replace(
                text=text.text.replace(f"module {name} ", f"module {names[name]} ", 1)
            )
            for name, text in made.items()
        }
        known |= own
        named = _renamed(netlist, names, prefix)
        text = TopText(named, prefix, own)
        boards = [board for board, kind in enumerate(system.kind_of) if kind == number]
        kinds.append(BoardKind(_top(system, number), boards, named, own, text))
    return kinds


def _renamed(netlist: Netlist, names: Mapping[str, str], prefix: str) -> Netlist:
    """A netlist with other names of modules."""
    named = {name: names[prefix + name].removeprefix(prefix) for name in netlist.modules}
    arrays = tuple(
        replace(each, module=named.get(each.module, each.module)) for each in netlist.arrays
    )
    return replace(
        netlist,
        modules={named[name]: make for name, make in netlist.modules.items()},
        roles={named[name]: role for name, role in netlist.roles.items()},
        arrays=arrays,
    )


def _top(system: BoardSystem, kind: int) -> str:
    """The name of the top of a kind of board."""
    return f"{system.fabric.prefix}board_{kind}"


def _about(system: BoardSystem) -> list[str]:
    """What is said of the boards above the text."""
    plan, boards = system.plan, system.boards
    depths = ", ".join(f"{plan.depth(latency)} of {latency} cycles" for latency in plan.latencies)
    return [
        f"on {boards} boards of {boards.nodes.shape[1]} nodes, with {plan.links} link ports each;",
        f"elastic buffers of {depths}: clocks within {system.ppm:g} ppm drift apart by "
        f"{plan.drift:.2f} words in {plan.window} cycles",
    ]


def _files(
    system: BoardSystem, kinds: list[BoardKind], modules: list[str], *, command: str
) -> dict[str, str]:
    """The files beside the text of some modules."""
    texts = bench_files(Bench(FILES, WHOLE, {f"{WHOLE}.v": _whole(system, kinds)}))
    names = [TEXT, *sorted(texts)]
    said = system_manifest(system, command=command, files=names, modules=modules)
    return {name: texts[name] for name in names[1:]} | {MANIFEST: as_json(said)}


def system_manifest(
    system: BoardSystem, *, command: str, files: list[str], modules: list[str]
) -> dict[str, Any]:
    """What a user of the Verilog has to know: the manifest of the fabric, and what boards change.

    Ports are those of a board; `host_node` counts its nodes in the order of ``boards``.
    """
    said = manifest(system.fabric, command=command, files=files, modules=modules)
    overhead = system.plan.overhead
    for mode in said["modes"]:
        for each in (mode, *mode.get("forms", ())):
            each["cycles"] = [
                piece | {"constant": _more(piece["constant"], overhead)} for piece in each["cycles"]
            ]
    if "predicted_cycles" in said:
        said["predicted_cycles"] += overhead
    return said | {
        "top": _top(system, 0),
        "interface": "boards",
        "read_latency": system.read_latency,
        "ports": port_facts(system.netlists[0]),
        **_boards(system),
    }


def _more(cycles: int | list[int], overhead: int) -> int | list[int]:
    """Cycles, or those by root, with the overhead of an attempt."""
    return [each + overhead for each in cycles] if isinstance(cycles, list) else cycles + overhead


def _boards(system: BoardSystem) -> dict[str, Any]:
    """What is said of boards, and where each of their link ports leads."""
    plan, boards = system.plan, system.boards
    names = boards.torus.port_names
    return {
        "boards": [
            {
                "board": board,
                "top": _top(system, system.kind_of[board]),
                "nodes": boards.nodes[board].tolist(),
                "links": [
                    {
                        "link": link,
                        "node": int(boards.nodes[board, node]),
                        "port": names[port],
                        "latency": boards.latency[link],
                        "to": {"board": end.board, "link": end.link},
                    }
                    for link, ((node, port), end) in enumerate(
                        zip(boards.links, boards.ends[board], strict=True)
                    )
                ],
            }
            for board in range(boards.number)
        ],
        "blocks": list(boards.counts),
        "phy": system.phy.name,
        **plan.facts(),
        "drift_cycles": plan.window,
        "buffers": plan.depths,
    }


def _whole(system: BoardSystem, kinds: list[BoardKind]) -> str:
    """The module of the bench that connects all boards; each has ports with its number.

    Registers hold any values at first, as they do in a chip: simulators would make a sum of words
    unknown where one of them is, though nobody uses it. Only tables, and what loads them, have
    contents.
    """
    prefix = system.fabric.prefix
    heads, wires, parts, first = [], [], [], []
    for board, number in enumerate(system.kind_of):
        kind = kinds[number]
        top, netlist = kind.top, kind.netlist
        outer, bits = _outer(netlist), netlist.inputs | netlist.outputs
        heads += [f"  {way} wire {range_of(width)}board_{board}_{name}"
                  for name, (way, width) in outer.items()]  # fmt: skip
        pins = {name: f"board_{board}_{name}" for name in outer}
        pins["board"] = f"{bits['board']}'d{board}"
        for link, (there, port) in enumerate(system.boards.ends[board]):
            for name in LINK_PORTS:
                pin, sent = link_port(link, name), link_port(port, name.replace("rx", "tx"))
                pins[pin] = f"board_{there}_{'clk' if name == 'rx_clk' else sent}"
                if name.startswith("tx"):
                    pins[pin] = f"board_{board}_{pin}"
                    wires.append(f"  wire {range_of(bits[pin])}{pins[pin]};")
        every = ",\n    ".join(f".{pin}({net})" for pin, net in pins.items())
        parts.append(f"  {top} board_{board} (\n    {every}\n  );")
        first += [
            f"    {path}.{name} = {{{-(-width // 32)}{{$random}}}};"
            for array in netlist.arrays
            if array.role not in (Role.TABLE, Role.LOADER)
            for path in (f"board_{board}.{kind.text.path(array, k)}" for k in array.index.tolist())
            for name, width in kind.texts[prefix + array.module].structure.clocked.items()
        ]
    return "\n".join(["// All boards, and the cables between them.",
                      "/* verilator lint_off WIDTHTRUNC */ // registers cut what $random gives",
                      f"module {WHOLE} (", ",\n".join(heads), ");", *wires, *parts,
                      "  initial begin", *first, "  end", "endmodule\n"])  # fmt: skip


def _outer(netlist: Netlist) -> Mapping[str, tuple[str, int]]:
    """The ports of a board that are no link's, nor its number."""
    inputs = {"clk": 1, "rst": 1} | netlist.inputs
    return {
        name: (way, bits)
        for way, ports in (("input", inputs), ("output", netlist.outputs))
        for name, bits in ports.items()
        if name != "board" and not name.startswith("link_")
    }
