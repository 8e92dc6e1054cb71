"""Pages for people beside the manifest, in Markdown: of a bus, of a core, of all ports.

All of it is in the manifest; ``docs/reference/bus.md`` and ``core.md`` explain it at length.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..toolchain.quoting import markdown_cell, markdown_code
from .diagram import Diagram, can_render

__all__ = ["BUS_PAGE", "CORE_PAGE", "bus_page", "core_page", "docs_files"]

#: The files that they become: of a bus, of a core, and in a folder with diagrams.
BUS_PAGE, CORE_PAGE, FOLDER, PAGE = "bus.md", "core.md", "docs", "signals.md"

ADDRESSES = """\
Offsets count bytes, of {size:#x} in all; an address of this bus counts {unit}.
Bus words are {data_width} bits{flits}.
"""

BURSTS = (
    "Registers{load} are behind `s_axil`, windows behind `s_axi`, whose beats are {beats} bits: "
    "{flits} each.\n"
)

STREAMS = """\
`inject_N` has the words of chunks {inject}, `receive_N` those of in-ports {receive}; the first is
in the least significant bits. The flits of a chunk are f = 0 to {last}, the steps s = 1 to {steps}.
Flit f of chunk c is flit {block_flits} c + f of a message of {part_flits}; beyond is padding.
`{address_map}` lists in `arrivals[N][in-port][s - 1]` which [origin, chunk] arrives.
"""

MEMORIES = """\
Chunks of a part: {part_chunks}. Block k is chunk k mod {part_chunks} of part k div {part_chunks};
`{address_map}` lists its bank and first address in `sent[N][k]` and `received[N][k]`.
Flit f of chunk c is flit {block_flits} c + f of a part of {part_flits}; beyond is padding.
"""

BEATS = """\
Words are beats of {beat} flits, the first in the lowest bits, at the address of the first.
"""

RUN = (("-1", "`start` is high"), ("0 to {done} - 1", "`busy` is high"))

DONE = (("{done}", "`done` is high from here on; the next `start` may be given"),)

STREAM_CYCLES = (
    *RUN,
    ("{tx_address_cycle} + {steps} f", "`tx_address` begins to show f"),
    ("{inject_cycle} + {steps} f", "`inject_N` must be flit f of each chunk"),
    (
        "{receive_cycle} + {steps} f + s - 1",
        "`receive_N` shows step s of flit f, while `rx_enable`; `rx_address` is {steps} f + s - 1",
    ),
    *DONE,
)

MEMORY_CYCLES = (
    ("up to -2, one an edge", "`write_.._N` write what is sent"),
    *RUN,
    *DONE,
    ("{done} + k", "`read_address_N` is the k-th address to read"),
    ("{done} + k + {read_bank_delay}", "`read_bank_N` is its bank"),
    ("{done} + k + {read_latency}", "`read_data_N` shows its word"),
)

CYCLES = """\
The waves are those of a simulation of this fabric. `cycle` numbers the cycles, each from a rising
edge to the next; in those that a gap leaves out, nothing that is shown changes but counters.
"""


def bus_page(manifest: Mapping[str, Any]) -> str:
    """The page about a fabric behind a bus, given its manifest."""
    bus, beat = manifest["bus"], manifest.get("beat", 1)
    bits = beat * manifest["width"]
    count = -(-bits // bus["data_width"])
    what = "flits" if beat == 1 else f"beats of {beat} flits"
    words = "one" if count == 1 else f"{count}, the low bits first"
    text = ADDRESSES.format(
        **bus,
        flits=f"; {what} are {bits}, each in {words}" if bus["windows"] else "",
        unit="bytes" if bus["address_unit"] == 1 else "bus words",
    )
    lines = [*_table(("port", "", "bits", ""), _ports(manifest, every=True)), "", text]
    if beats := bus.get("beat_width"):
        load = " and `load`" if "load" in bus["windows"] else ""
        flits = "a flit" if beat == 1 else f"{beat} flits"
        lines.append(BURSTS.format(load=load, beats=beats, flits=flits))
    lines += [*_table(("offset", "register", "access", "bits", ""), _fields(bus["registers"])), ""]
    if bus["windows"]:
        lines += [*_table(("offset", "window", "access", ""), _windows(bus["windows"])), ""]
    return _page(f"The fabric `{manifest['top']}` behind {bus['protocol']}", manifest, lines)


def core_page(manifest: Mapping[str, Any]) -> str:
    """The page about a core, given its manifest: ports in their order, and their cycles."""
    form = manifest.get("streams") or manifest["memories"]
    facts = form | {"done": manifest["predicted_cycles"], "last": form["block_flits"] - 1}
    facts |= {name: ", ".join(map(str, form[name])) for name in ("inject", "receive") & form.keys()}
    streams = "streams" in manifest
    text, cycles = (STREAMS, STREAM_CYCLES) if streams else (MEMORIES, MEMORY_CYCLES)
    if "beat" in manifest:
        text, facts = text + BEATS, facts | {"beat": manifest["beat"]}
    return _page(f"The core `{manifest['top']}`", manifest, [
        f"Ports in the order of the module. Those of nodes, N = 0 to {manifest['nodes'] - 1}, "
        "are there for one node after the other, inputs before outputs.",
        "",
        *_table(("port", "", "bits", ""), _ports(manifest)),
        "",
        text.format(**facts),
        "Cycle c is the time from edge c of `clk` to the next; edge 0 takes the start pulse.",
        "",
        *(line.format(**facts) for line in _table(("cycle", ""), cycles)),
        "",
    ])  # fmt: skip


def docs_files(manifest: Mapping[str, Any], diagrams: Sequence[Diagram]) -> dict[str, str]:
    """The texts of the files about the ports, by their names: a table, and timing diagrams."""
    texts = {PAGE: _signals_page(manifest, diagrams)}
    for each in diagrams:
        texts[f"{each.name}.json"] = each.json
        if can_render():
            texts[f"{each.name}.svg"] = each.svg()
    return {f"{FOLDER}/{name}": text for name, text in texts.items()}


def _signals_page(manifest: Mapping[str, Any], diagrams: Sequence[Diagram]) -> str:
    """The page about all ports."""
    lines = []
    if any(port["node"] is not None for port in manifest["ports"].values()):
        lines += [f"Ports of nodes are there for each node N = 0 to {manifest['nodes'] - 1}.", ""]
    head = ("port", "", "bits", "clock", "protocol", "role", "")
    lines += [*_table(head, _ports(manifest, ("clock", "protocol", "role"))), ""]
    lines += ["## In time", "", CYCLES] if diagrams else []
    for each in diagrams:
        picture = f"[{each.name}.json]({each.name}.json), for WaveDrom"
        if can_render():
            picture = f"![{each.title}]({each.name}.svg)"
        lines += [f"### {each.title}", "", each.meaning, "", picture, ""]
    return _page(f"The ports of `{manifest['top']}`", manifest, lines)


def _page(title: str, manifest: Mapping[str, Any], lines: Iterable[str]) -> str:
    """A page, with what made it."""
    made = f"Made by {markdown_code(manifest['command'])}."
    return "\n".join([f"# {title}", "", made, "", *lines])


def _table(head: tuple[str, ...], rows: Iterable[Iterable[str]]) -> list[str]:
    """The lines of a table.

    Examples
    --------
    >>> _table(("port", "bits"), [("clk", "1")])
    ['| port | bits |', '|---|---|', '| clk | 1 |']
    """
    lines = [f"| {' | '.join(map(markdown_cell, row))} |" for row in (head, *rows)]
    return [lines[0], "|---" * len(head) + "|", *lines[1:]]


def _ports(
    manifest: Mapping[str, Any], besides: tuple[str, ...] = (), *, every: bool = False
) -> Iterator[tuple[str, ...]]:
    """Ports as rows with what is said besides; those of node 0 for all nodes, or every one."""
    for name, port in manifest["ports"].items():
        if every or port["node"] in (None, 0):
            known = name if every or port["node"] is None else _of_any_node(name)
            facts = (_of_any_node(port[each] or "") for each in besides)
            yield f"`{known}`", port["direction"], str(port["width"]), *facts, port["meaning"]


def _of_any_node(name: str) -> str:
    """The name of a port with N in place of the number of node 0, if it has that.

    Examples
    --------
    >>> _of_any_node("read_data_0"), _of_any_node("s_axis_0_tdata"), _of_any_node("clk")
    ('read_data_N', 's_axis_N_tdata', 'clk')
    """
    return re.sub(r"_0(?=_|$)", "_N", name, count=1)


def _fields(registers: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, ...]]:
    """The fields of registers as rows, each register once."""
    for name, register in registers.items():
        first = (f"`{register['offset']:#04x}`", f"`{name}`", register["access"])
        for field, bits in register["fields"].items():
            low, high = bits["low"], bits["low"] + bits["width"] - 1
            what = bits["meaning"] if field == "value" else f"`{field}`: {bits['meaning']}"
            yield *first, str(low) if low == high else f"{high}..{low}", what
            first = ("", "", "")


def _windows(windows: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, ...]]:
    """Windows as rows."""
    for name, window in windows.items():
        places = (
            f"beat b of node n at {window['offset']:#x} + {window['stride']:#x} n + "
            f"{window['flit_bytes']} b; n < {window['nodes']}, b < {window['flits']}"
        )
        if name == "load":
            places = f"word k at {window['offset']:#x} + 4 k; k < {window['flits']}"
        what = f"{window['meaning']}: {places}"
        yield f"`{window['offset']:#x}`", f"`{name}`", window["access"], what
