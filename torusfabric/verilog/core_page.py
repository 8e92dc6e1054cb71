"""A page about a core for people, beside its manifest: ports in their order, and their cycles.

All of it is in the manifest; ``docs/reference/core.md`` explains it at length.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from ..toolchain.quoting import markdown_code
from .tables import table

__all__ = ["CORE_PAGE", "core_page"]

#: The file that it becomes.
CORE_PAGE = "core.md"

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


def core_page(manifest: Mapping[str, Any]) -> str:
    """The page about a core.

    Parameters
    ----------
    manifest : mapping
        Of a core.

    Returns
    -------
    str
        In Markdown.
    """
    form = manifest.get("streams") or manifest["memories"]
    facts = form | {"done": manifest["predicted_cycles"], "last": form["block_flits"] - 1}
    facts |= {name: ", ".join(map(str, form[name])) for name in ("inject", "receive") & form.keys()}
    streams = "streams" in manifest
    text, cycles = (STREAMS, STREAM_CYCLES) if streams else (MEMORIES, MEMORY_CYCLES)
    if "beat" in manifest:
        text, facts = text + BEATS, facts | {"beat": manifest["beat"]}
    return "\n".join(
        [
            f"# The core `{manifest['top']}`",
            "",
            f"Made by {markdown_code(manifest['command'])}.",
            "",
            f"Ports in the order of the module. Those of nodes, N = 0 to {manifest['nodes'] - 1}, "
            "are there for one node after the other, inputs before outputs.",
            "",
            *table(("port", "", "bits", ""), _ports(manifest["ports"])),
            "",
            text.format(**facts),
            "Cycle c is the time from edge c of `clk` to the next; edge 0 takes the start pulse.",
            "",
            *(line.format(**facts) for line in table(("cycle", ""), cycles)),
            "",
        ]
    )


def _ports(ports: Mapping[str, Mapping[str, Any]]) -> Iterable[tuple[str, ...]]:
    """Ports as rows, those of node 0 for all nodes."""
    for name, port in ports.items():
        if port["node"] in (None, 0):
            known = name if port["node"] is None else f"{name.removesuffix('_0')}_N"
            yield f"`{known}`", port["direction"], str(port["width"]), port["meaning"]
