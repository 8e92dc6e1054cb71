"""The links that a user says are out of order."""

import re
from argparse import Namespace

from ..errors import InputError
from ..toolchain.reading import read_text
from ..topology import Topology

__all__ = ["broken_links"]

#: Bytes of a file of broken links.
MOST_LINKS = 2**24


def broken_links(topology: Topology, arguments: Namespace) -> tuple[tuple[int, int], ...]:
    """The links that are out of order, as arcs."""
    texts = list(arguments.broken_link)
    if arguments.broken_links:
        lines = read_text(
            arguments.broken_links, "File of broken links", most=MOST_LINKS
        ).splitlines()
        texts += [line.split("#")[0].strip() for line in lines if line.split("#")[0].strip()]
    return tuple(_arc(topology, text) for text in texts)


def _arc(topology: Topology, text: str) -> tuple[int, int]:
    """An arc written NODE:PORT."""
    node, _, port = text.partition(":")
    if not re.fullmatch(r"\d{1,18}", node) or not port or int(node) >= topology.nodes:
        raise InputError(
            f"Broken link must be NODE:PORT with a node below {topology.nodes}, not {text!r}"
        )
    return int(node), topology.port(port)
