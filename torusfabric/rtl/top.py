"""The tops of fabrics: what goes with which, and what is known of one that is built."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from ..errors import InputError
from ..program import Program
from ..program.fields import Order
from ..toolchain.values import Choice

__all__ = ["Built", "Clocks", "Top", "check_prefix", "check_top", "is_direct"]


class Top(Choice):
    """The interface of a fabric."""

    #: One memory-mapped port serves all nodes.
    HOST = "host"
    #: Every node has ports of its own.
    CORE = "core"
    #: Every node has a stream of what it sends, and one of what it receives.
    STREAM = "stream"


class Clocks(Choice):
    """The clocks of the streams of nodes."""

    #: The one of the fabric.
    ONE = "one"
    #: Each node has one of its own.
    PER_NODE = "per-node"


def is_direct(program: Program) -> bool:
    """Whether nodes of a core have ports for what they send and receive, in place of memories."""
    by_routes = program.form.receive_map.otherwise is not None
    return by_routes and program.loop.order is Order.FLIT


class Built(NamedTuple):
    """What is known of a top once it is built.

    Parameters
    ----------
    router_classes : list of (str, int)
        The modules of routers, and of how many nodes each is.
    read_latency : int
        Edges from an address to its data; 0 where nothing is read at addresses.
    finders : list of Finder
        What finds words for the host.
    """

    router_classes: list[tuple[str, int]]
    read_latency: int = 0
    finders: Sequence[Any] = ()


#: The longest prefix of names of modules, and all prefixes.
MAX_PREFIX = 64
PREFIX = rf"([a-z_]\w{{0,{MAX_PREFIX - 1}}})?"


def check_prefix(prefix: str) -> None:
    """Check that the names of modules in Verilog can begin with a prefix.

    Raises
    ------
    InputError
        If they cannot.

    Examples
    --------
    >>> check_prefix("left_")
    >>> check_prefix("2nd_")
    Traceback (most recent call last):
    torusfabric.errors.InputError: Prefix must be a letter or _, then letters, digits and _, \
up to 64 in all, not '2nd_'
    """
    if not isinstance(prefix, str) or not re.fullmatch(PREFIX, prefix, re.ASCII | re.IGNORECASE):
        raise InputError(
            "Prefix must be a letter or _, then letters, digits and _, up to "
            f"{MAX_PREFIX} in all, not {prefix!r}"
        )


def check_top(program: Program, top: Top, *, bus: bool, clocks: Clocks, timeout: int) -> None:
    """Check that a top is one for a program, and for what else is wanted.

    Raises
    ------
    InputError
        If it is not.
    """
    kind = program.schedule.collective.kind
    of_host = {
        "messages of any length": program.any_length,
        f"{kind} from any root": program.form.part_is_root,
        "several operators": len(program.operators) > 1,
    }
    for what, wanted in of_host.items():
        if wanted and top is Top.CORE:
            raise InputError(f"Top must be host for {what}, not core")
    if bus and top is Top.CORE:
        raise InputError("Top must be host or stream for a fabric behind a bus, not core")
    of_stream = {
        "a barrier": program.barrier,
        "clocks of the nodes": clocks is not Clocks.ONE,
        "a timeout of nodes": timeout > 0,
    }
    for what, wanted in of_stream.items():
        if wanted and top is not Top.STREAM:
            raise InputError(f"Top must be stream for {what}, not {top}")
