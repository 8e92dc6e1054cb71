"""Verilog of a fabric on several boards, with a manifest and a bench that connects all boards.

Boards with equal netlists are of one *kind*. Each kind has its own top module: ``board_0``,
``board_1`` and so on. If two kinds have modules with the same name and the same Verilog, the module
is written once. If the Verilog differs, the number of the kind is appended to the name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from ...contract.interface import BenchAdditions
from ...rtl.netlist import Netlist, Role
from ...verilog.design import MANIFEST, VERILOG_FILE, Design, make_and_write
from ...verilog.manifest import bench_files, json_text, manifest, port_facts
from ...verilog.module_text import MemoryRule, ModuleText
from ...verilog.syntax import range_of
from ...verilog.text import header_comment, module_texts, split_by_memory_rule
from ...verilog.top import RomContents, TopText, distinct_rom_contents, instance_counts
from ..host.interface import SOURCES
from .hardware import BoardSystem
from .hardware.ports import LINK_PORTS
from .hardware.system import link_port_name

__all__ = ["BoardKind", "board_kinds", "emit_boards", "write"]

#: Name of the bench module that connects all boards.
BENCH_TOP = "boards"

#: Bench files for several boards, in place of the files for one chip.
BENCH_FILES: Mapping[str, str | Path] = {
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
    """Write ``fabric.v``, ``manifest.json`` and a bench into a folder, and return the Verilog.

    Parameters
    ----------
    system : BoardSystem
        The fabric on all boards.
    choices : mapping of str to object
        Options of the command by keyword. Only ``ram`` is used, the rule that chooses the kind of
        RAM for each memory.
    folder : str or Path
        Where the files are written.
    command : str
        The command line, for headers.
    force : bool
        True to replace files of these names even if torusfabric did not make them.
    """
    make = lambda: emit_boards(system, command=command, ram=choices["ram"])
    return make_and_write(make, folder, force=force)


def emit_boards(
    system: BoardSystem, *, command: str = "torusfabric verilog", ram: str = "auto"
) -> Design:
    """Return the Verilog of all boards of a fabric, its manifest and its bench.

    Parameters
    ----------
    system : BoardSystem
        The fabric on several boards.
    command : str
        Command line that made the fabric, for the header of the Verilog and for the manifest.
    ram : str
        Rule that chooses the kind of RAM for each memory; see `MemoryRule.parse`.

    Raises
    ------
    InputError
        If `ram` is no rule for memories.

    Examples
    --------
    Both boards have equal netlists, so the Verilog has one top module for both.

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
        # Kinds may have ROMs of equal names: prefix their contents with the top of the kind.
        own = {
            f"{kind.top}_{name}": rom for name, rom in distinct_rom_contents(kind.netlist).items()
        }
        counts = instance_counts(kind.netlist, prefix, {rom: name for name, rom in own.items()})
        modules[kind.top] = ModuleText(kind.text.text(kind.top), kind.text.structure, counts)
        contents |= own
    return Design.from_modules(
        modules,
        kinds[0].top,
        contents=contents,
        interface="boards",
        prefix=prefix,
        header=header_comment(system.fabric, command, _header_lines(system), crossings=True),
        files=_bench_and_manifest(system, kinds, [*modules], command=command),
    )


class BoardKind(NamedTuple):
    """Boards with equal netlists, and their Verilog.

    Parameters
    ----------
    top : str
        Name of the top module.
    boards : list of int
        Numbers of the boards.
    netlist : Netlist
        Netlist of each of these boards.
    texts : dict of str to ModuleText
        Verilog of each module, by its name. Another kind of boards uses the same name only for a
        module with the same Verilog.
    text : TopText
        Verilog of the top module, which connects these modules.
    """

    top: str
    boards: list[int]
    netlist: Netlist
    texts: Mapping[str, ModuleText]
    text: TopText


def board_kinds(system: BoardSystem, rule: MemoryRule) -> list[BoardKind]:
    """Return the kinds of boards, sorted by the lowest number of a board of the kind.

    A module is renamed if an earlier kind has a different module of the same name.

    Parameters
    ----------
    system : BoardSystem
        The fabric on all boards.
    rule : MemoryRule
        Chooses the kind of RAM for each memory.
    """
    prefix, known, kinds = system.fabric.prefix, dict[str, ModuleText](), list[BoardKind]()
    for number, netlist in enumerate(dict.fromkeys(system.netlists)):
        split, rules = split_by_memory_rule(netlist, rule)
        made = module_texts(split, prefix, rules)
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
        named = _rename_modules(split, names, prefix)
        text = TopText(named, prefix, own)
        boards = [board for board, kind in enumerate(system.kinds_of_boards) if kind == number]
        kinds.append(BoardKind(_top_name(system, number), boards, named, own, text))
    return kinds


def _rename_modules(netlist: Netlist, names: Mapping[str, str], prefix: str) -> Netlist:
    """Return a netlist whose modules have other names.

    `names` maps each old name to the new one; both begin with `prefix`, the prefix of the fabric.
    """
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


def _top_name(system: BoardSystem, kind: int) -> str:
    """Return the name of the top module of the kind of boards with the number `kind`.

    The prefix of all modules of `system` comes first.
    """
    return f"{system.fabric.prefix}board_{kind}"


def _header_lines(system: BoardSystem) -> list[str]:
    """Return the lines about boards in the header of the Verilog: their number, links and buffers.

    `system` is the fabric on all boards.
    """
    plan, boards = system.link_plan, system.boards
    depths = ", ".join(
        f"{plan.buffer_depth(latency)} of {latency} cycles" for latency in plan.latencies
    )
    return [
        f"on {boards} boards of {boards.nodes_by_board.shape[1]} nodes, with {plan.n_links} "
        "link ports each;",
        f"elastic buffers of {depths}: clocks within {system.ppm:g} ppm drift apart by "
        f"{plan.drift_words:.2f} words in {plan.drift_window} cycles",
    ]


def _bench_and_manifest(
    system: BoardSystem, kinds: list[BoardKind], modules: list[str], *, command: str
) -> dict[str, str]:
    """Return the text of each file beside the Verilog, by file name: bench files and manifest.

    `modules` has the names of all Verilog modules, `command` is the command line, for the manifest.
    `system` is the fabric on all boards, and `kinds` are its kinds of boards.
    """
    texts = bench_files(
        BenchAdditions(BENCH_FILES, BENCH_TOP, {f"{BENCH_TOP}.v": _bench_module(system, kinds)})
    )
    names = [VERILOG_FILE, *sorted(texts)]
    said = system_manifest(system, command=command, files=names, modules=modules)
    return {name: texts[name] for name in names[1:]} | {MANIFEST: json_text(said)}


def system_manifest(
    system: BoardSystem, *, command: str, files: list[str], modules: list[str]
) -> dict[str, Any]:
    """Return the manifest: that of the fabric on one chip, with additions for boards.

    Ports are the ports of one board. The port `host_node` numbers the nodes of a board in the order
    of its ``nodes`` in the manifest. The numbers of cycles include the overhead of several boards.
    They hold for a run that the boards execute once, and not again after an error of a link.

    Parameters
    ----------
    system : BoardSystem
        The fabric on several boards.
    command : str
        Command line that made the files.
    files : list of str
        Names of all files beside the manifest.
    modules : list of str
        Names of all Verilog modules.
    """
    said = manifest(system.fabric, command=command, files=files, modules=modules)
    overhead = system.link_plan.attempt_overhead
    for mode in said["modes"]:
        for each in (mode, *mode.get("forms", ())):
            each["cycles"] = [
                piece | {"constant": _add_overhead(piece["constant"], overhead)}
                for piece in each["cycles"]
            ]
    if "predicted_cycles" in said:
        said["predicted_cycles"] += overhead
    return said | {
        "top": _top_name(system, 0),
        "interface": "boards",
        "read_latency": system.read_latency,
        "ports": port_facts(system.netlists[0]),
        **_board_facts(system),
    }


def _add_overhead(cycles: int | list[int], overhead: int) -> int | list[int]:
    """Return the cycles of a run on several boards, given those on one chip.

    `cycles` is one number, or a list with one number for each root, and the result has the same
    form. `overhead` is the number of cycles that several boards add to each execution of the run.
    The result is for one execution; after an error of a link, the boards make another one.
    """
    return [each + overhead for each in cycles] if isinstance(cycles, list) else cycles + overhead


def _board_facts(system: BoardSystem) -> dict[str, Any]:
    """Return the entries of the manifest about boards.

    For each board: its top module, nodes and link ports. For each link port: the board and the link
    port at the other end of the cable. `system` is the fabric on all boards.
    """
    plan, boards = system.link_plan, system.boards
    names = boards.torus.port_names
    return {
        "boards": [
            {
                "board": board,
                "top": _top_name(system, system.kinds_of_boards[board]),
                "nodes": boards.nodes_by_board[board].tolist(),
                "links": [
                    {
                        "link": link,
                        "node": int(boards.nodes_by_board[board, node]),
                        "port": names[port],
                        "latency": boards.latency_cycles[board][link],
                        "to": {"board": end.board, "link": end.link},
                    }
                    for link, ((node, port), end) in enumerate(
                        zip(boards.link_ports, boards.far_ends[board], strict=True)
                    )
                ],
            }
            for board in range(boards.n_boards)
        ],
        "blocks": list(boards.counts),
        "phy": system.phy.name,
        **plan.facts(),
        "drift_cycles": plan.drift_window,
        "buffers": plan.buffer_depths,
    }


def _bench_module(system: BoardSystem, kinds: list[BoardKind]) -> str:
    """Return the Verilog of the bench module that connects all boards.

    The names of its ports for board k begin with ``board_k_``. All registers, except those of
    tables and of the circuit that loads tables, get random initial values, as in a chip. Why: a
    simulator that starts with unknown values would make the CRC of the words of a link unknown,
    although nobody uses the unknown words. `system` is the fabric on all boards, and `kinds` are
    its kinds of boards.
    """
    prefix = system.fabric.prefix
    heads, wires, parts, first = [], [], [], []
    for board, number in enumerate(system.kinds_of_boards):
        kind = kinds[number]
        top, netlist = kind.top, kind.netlist
        outer, bits = _board_ports(netlist), netlist.inputs | netlist.outputs
        heads += [f"  {way} wire {range_of(width)}board_{board}_{name}"
                  for name, (way, width) in outer.items()]  # fmt: skip
        pins = {name: f"board_{board}_{name}" for name in outer}
        pins["board"] = f"{bits['board']}'d{board}"
        for link, (there, port) in enumerate(system.boards.far_ends[board]):
            for name in LINK_PORTS:
                pin, sent = (
                    link_port_name(link, name),
                    link_port_name(port, name.replace("rx", "tx")),
                )
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
            for path in (
                f"board_{board}.{kind.text.instance_path(array, k)}" for k in array.index.tolist()
            )
            for name, width in kind.texts[prefix + array.module].structure.clocked.items()
        ]
    return "\n".join(["// All boards, and the cables between them.",
                      "/* verilator lint_off WIDTHTRUNC */ // registers cut what $random gives",
                      f"module {BENCH_TOP} (", ",\n".join(heads), ");", *wires, *parts,
                      "  initial begin", *first, "  end", "endmodule\n"])  # fmt: skip


def _board_ports(netlist: Netlist) -> Mapping[str, tuple[str, int]]:
    """Return the ports of a board by name: "input" or "output", and the width in bits.

    Link ports are left out, and so is the input `board`, the number of the board. `netlist` is that
    of the board.
    """
    inputs = {"clk": 1, "rst": 1} | netlist.inputs
    return {
        name: (way, bits)
        for way, ports in (("input", inputs), ("output", netlist.outputs))
        for name, bits in ports.items()
        if name != "board" and not name.startswith("link_")
    }
