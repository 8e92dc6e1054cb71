"""A page about the ports of a fabric: a table of all of them, and timing diagrams."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..toolchain.quoting import markdown_code
from .diagram import Diagram, can_render
from .tables import table

__all__ = ["docs_files", "docs_names"]

#: The folder of the page and of its diagrams, in that of an export, and the page.
FOLDER, PAGE = "docs", "signals.md"

HEAD = ("port", "", "bits", "clock", "protocol", "role", "")

CYCLES = """\
The waves are those of a simulation of this fabric. `cycle` numbers the cycles, each from a rising
edge to the next; in those that a gap leaves out, nothing that is shown changes but counters.
"""


def docs_names(diagrams: Sequence[Diagram]) -> list[str]:
    """The files about the ports."""
    endings = ("json", "svg") if can_render() else ("json",)
    names = [PAGE, *(f"{one.name}.{ending}" for one in diagrams for ending in endings)]
    return [f"{FOLDER}/{name}" for name in names]


def docs_files(manifest: Mapping[str, Any], diagrams: Sequence[Diagram]) -> dict[str, str]:
    """The texts of the files about the ports, by their names."""
    texts = {PAGE: _page(manifest, diagrams)}
    for diagram in diagrams:
        texts[f"{diagram.name}.json"] = diagram.json
        if can_render():
            texts[f"{diagram.name}.svg"] = diagram.svg()
    return {f"{FOLDER}/{name}": text for name, text in texts.items()}


def _page(manifest: Mapping[str, Any], diagrams: Sequence[Diagram]) -> str:
    """The page, in Markdown."""
    nodes = manifest["nodes"] - 1
    lines = [
        f"# The ports of `{manifest['top']}`",
        "",
        f"Made by {markdown_code(manifest['command'])}.",
        "",
    ]
    if any(port["node"] is not None for port in manifest["ports"].values()):
        lines += [f"Ports of nodes are there for each node N = 0 to {nodes}.", ""]
    lines += [*table(HEAD, _rows(manifest["ports"])), ""]
    if diagrams:
        lines += ["## In time", "", CYCLES]
    for diagram in diagrams:
        lines += [f"### {diagram.title}", "", diagram.meaning, "", _picture(diagram), ""]
    return "\n".join(lines)


def _picture(diagram: Diagram) -> str:
    """Where the diagram is."""
    if can_render():
        return f"![{diagram.title}]({diagram.name}.svg)"
    return f"[{diagram.name}.json]({diagram.name}.json), for WaveDrom"


def _rows(ports: Mapping[str, Mapping[str, Any]]) -> Iterable[tuple[str, ...]]:
    """Ports as rows, those of node 0 for all nodes."""
    for name, port in ports.items():
        if port["node"] in (None, 0):
            known = name if port["node"] is None else _of_any_node(name)
            yield (
                f"`{known}`",
                port["direction"],
                str(port["width"]),
                _of_any_node(port["clock"]) if port["clock"] else "",
                port["protocol"],
                port["role"],
                port["meaning"],
            )


def _of_any_node(name: str) -> str:
    """The name of a port with N in place of the number of node 0, if it has that.

    Examples
    --------
    >>> _of_any_node("read_data_0"), _of_any_node("s_axis_0_tdata"), _of_any_node("clk")
    ('read_data_N', 's_axis_N_tdata', 'clk')
    """
    return re.sub(r"_0(?=_|$)", "_N", name, count=1)
