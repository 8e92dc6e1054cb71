"""Recognition of the format of a graph file."""

from __future__ import annotations

import re
from pathlib import Path

from ...errors import InputError
from ...toolchain.reading import read_text
from .anynet import is_anynet, parse_anynet
from .contents import GraphFile
from .lines import parse_lines, split_lines
from .node_link import parse_node_link

__all__ = ["read_graph"]

#: The most bytes of a graph file: some 250 for each arc.
_MOST_BYTES = 2**24

#: The beginning of a graph in GML.
_GML_BEGINNING = re.compile(r"(?m)^[ \t]*graph\s*\[")

#: Other formats, each with the beginning by which it is recognised, in upper or lower case.
_OTHER_FORMATS = {
    # A node of an edge list may be named graph, but braces then hold a quote or nothing.
    "DOT": r"(?m)(strict\s+)?(di)?graph\b\s*(\"[^\"]*\"|\w*)\s*\{\s*($|[\w\"/])",
    "Pajek": r"\*(vertices|network)",
    "graph6": ">>(di)?graph6<<",
    "sparse6": ">>sparse6<<",
    "LEDA": r"leda\.graph",
    "Matrix Market": "%%matrixmarket",
    "JSON list": r"\[",
}


def read_graph(path: Path) -> GraphFile:
    """Read a graph file.

    Parameters
    ----------
    path : Path
        The graph file. Its content decides the format. Where the content fits an adjacency list and
        an edge list with weights, the extension of the name decides.

    Raises
    ------
    InputError
        If the file cannot be read, is malformed, has another format, or could mean two networks.
    """
    text = read_text(path, "File of a graph", most=_MOST_BYTES)
    try:
        return _parse(text, path.with_suffix("") if path.suffix == ".gz" else path)
    except InputError as error:
        raise InputError(f"File of a graph {path}: {error}") from error
    except RecursionError:
        raise InputError(f"File of a graph {path} is nested too deeply") from None


def _parse(text: str, path: Path) -> GraphFile:
    """Return the graph in `text`, the content of the file `path`."""
    beginning = re.sub(r"^(\s|//[^\n]*|/\*.*?\*/)+", "", text, flags=re.DOTALL)
    if beginning.startswith("{"):
        return parse_node_link(text)
    # The readers of GraphML and GML need modules of Python that commands import only for them.
    if beginning.startswith("<"):
        from .graphml import parse_graphml

        return parse_graphml(text)
    for name, pattern in _OTHER_FORMATS.items():
        if re.match(pattern, beginning, re.IGNORECASE):
            raise InputError(
                f"it is of the format {name}, which is not read; the formats are GraphML, GML, "
                "node-link JSON, edge list, adjacency list and BookSim anynet"
            )
    if _GML_BEGINNING.search(text):
        from .gml import parse_gml

        return parse_gml(text)
    lines = split_lines(text)
    return parse_anynet(lines) if is_anynet(lines) else parse_lines(lines, path.suffix)
