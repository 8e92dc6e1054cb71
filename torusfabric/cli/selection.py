"""How a user says what to plan: the same in every command."""

import argparse
import re
import shlex
from pathlib import Path

from ..algorithms import Options, choose, find
from ..collective import parse_collective
from ..errors import InputError
from ..planning.latency import quickest
from ..topology import parse_topology

__all__ = ["add_selection", "command_line", "parse_schedule", "parse_selection",
           "positive"]  # fmt: skip


def positive(text):
    """An integer of at least 1."""
    if not re.fullmatch(r"\d+", text) or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a positive integer, not {text!r}")
    return int(text)


def natural(text):
    """An integer of at least 0."""
    if not re.fullmatch(r"\d+", text):
        raise argparse.ArgumentTypeError(f"must be a whole number, not {text!r}")
    return int(text)


def node_or_any(text):
    """A node number, or the word any."""
    if text == "any":
        return text
    if not re.fullmatch(r"\d+", text):
        raise argparse.ArgumentTypeError(f"must be a node number or any, not {text!r}")
    return int(text)


def latency_or_auto(text):
    """A positive integer, or the word auto."""
    return text if text == "auto" else positive(text)


#: What a user may ask of an algorithm.
OPTIONS: dict[str, dict] = {
    "--root": {
        "metavar": "NODE",
        "type": node_or_any,
        "help": "node that sends or receives (default 0), or any: hardware that is told at the "
        "start",
    },
    "--ports": {
        "metavar": "A",
        "type": positive,
        "help": "messages a node may send at once (default all)",
    },
    "--chunks": {"metavar": "C", "type": positive, "help": "parts that a message is cut into"},
    "--large": {
        "action": "store_true",
        "help": "more rounds with shorter messages (lee-code)",
    },
    "--seed": {
        "metavar": "N",
        "type": natural,
        "default": 0,
        "help": "where a search starts (default 0)",
    },
    "--latency": {
        "metavar": "K",
        "type": latency_or_auto,
        "default": 1,
        "help": "steps from the arrival of a block to its departure (default 1), or auto: for a "
        "table of sums, what needs the fewest cycles in hardware",
    },
    "--duplex": {
        "choices": ("full", "half"),
        "default": "full",
        "help": "whether a link carries a message each way at once (default full)",
    },
    "--trees": {
        "metavar": "T",
        "type": positive,
        "help": "spanning trees used at once (spanning-tree)",
    },
    "--packets": {
        "metavar": "P",
        "type": positive,
        "help": "packets a tree's share is cut into",
    },
    "--times": {
        "metavar": ("BETA", "TAU", "LENGTH"),
        "nargs": 3,
        "type": float,
        "help": "times to start a step and to send a unit, and units of a message: "
        "take the number of packets that is best for them (spanning-tree)",
    },
    "--broken-link": {
        "metavar": "NODE:PORT",
        "action": "append",
        "default": [],
        "help": "a link out of order, e.g. 9:+0; may be repeated (max-flow)",
    },
    "--broken-links": {"metavar": "FILE", "help": "file with one NODE:PORT a line"},
}


def add_selection(parser, *, algorithm=True):
    """Add the arguments that select a topology, a collective and, unless all, an algorithm."""
    parser.add_argument(
        "topology",
        metavar="TOPOLOGY",
        help="side lengths of a torus (8x8, 7x7x7), or arrowhead:ORDER",
    )
    parser.add_argument(
        "collective",
        metavar="COLLECTIVE",
        help="broadcast, allgather, scatter, gather, alltoall, reduce, reduce-scatter or allreduce",
    )
    group = parser.add_argument_group("selection")
    if algorithm:
        group.add_argument(
            "--algorithm",
            metavar="NAME",
            help="by default the best that fits; see the algorithms command",
        )
    for name, settings in OPTIONS.items():
        group.add_argument(name, **settings)


def parse_selection(arguments, *, any_root=False):
    """The topology, the collective and the options that were selected.

    Raises
    ------
    InputError
        If a name is unknown, or a number out of range.
    """
    topology = parse_topology(arguments.topology)
    root = arguments.root
    if root == "any":
        root = _open_root(arguments, any_root)
    collective = parse_collective(arguments.collective, root=root, nodes=topology.nodes)
    ports = arguments.ports
    if ports is not None and ports > topology.ports:
        raise InputError(f"Ports must be from 1 to {topology.ports} on {topology}, not {ports}")
    options = Options(
        ports=ports,
        chunks=arguments.chunks,
        large=arguments.large,
        seed=arguments.seed,
        latency=1 if arguments.latency == "auto" else arguments.latency,
        broken_links=_broken_links(topology, arguments),
        duplex=arguments.duplex,
        trees=arguments.trees,
        packets=arguments.packets,
        times=tuple(arguments.times) if arguments.times else None,
    )
    return topology, collective, options


def parse_schedule(arguments, *, any_root=False):
    """Plan what was selected.

    Parameters
    ----------
    arguments : Namespace
        A latency of auto is replaced by the one that is chosen.
    any_root : bool
        Whether the root may be left open; the schedule is then for node 0.

    Returns
    -------
    Schedule

    Raises
    ------
    InputError
        If a name is unknown, or no algorithm fits.
    """
    topology, collective, options = parse_selection(arguments, any_root=any_root)
    algorithm = (
        find(arguments.algorithm) if arguments.algorithm else choose(topology, collective, options)
    )
    if arguments.latency != "auto":
        return algorithm(topology, collective, options)
    flits = getattr(arguments, "flits", None)
    schedule, arguments.latency = quickest(algorithm, topology, collective, options, flits)
    return schedule


def _open_root(arguments, allowed):
    """Node 0, for which a schedule for any root is planned.

    Raises
    ------
    InputError
        If a schedule for one root does not serve the others.
    """
    collective = parse_collective(arguments.collective)
    if not (collective.single_origin and collective.to_all):
        raise InputError(f"Root any must be for a broadcast, not {collective.kind}")
    if not allowed:
        raise InputError(f"Root must be a node number for {arguments.command}, not any")
    if arguments.broken_link or arguments.broken_links:
        raise InputError("Root must be a node number where links are broken, not any")
    return 0


def _broken_links(topology, arguments):
    """The links that are out of order, as arcs."""
    texts = list(arguments.broken_link)
    if arguments.broken_links:
        try:
            lines = Path(arguments.broken_links).read_text().splitlines()
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "not text"
            raise InputError(
                f"File of broken links must be readable, not {arguments.broken_links} ({reason})"
            ) from None
        texts += [line.split("#")[0].strip() for line in lines if line.split("#")[0].strip()]
    return tuple(_arc(topology, text) for text in texts)


def _arc(topology, text):
    """An arc written NODE:PORT."""
    node, _, port = text.partition(":")
    if not re.fullmatch(r"\d+", node) or not port or int(node) >= topology.nodes:
        raise InputError(
            f"Broken link must be NODE:PORT with a node below {topology.nodes}, not {text!r}"
        )
    return int(node), topology.port(port)


def command_line(arguments, schedule, **others):
    """The command that selects the same again, in a fixed form and without file names."""
    words = ["torusfabric", arguments.command, str(schedule.topology), schedule.collective.kind]
    settings = {"algorithm": schedule.algorithm} | {
        name: getattr(arguments, name, None)
        for name in ("root", "ports", "chunks", "seed", "latency", "trees", "packets", "op")
    }
    if arguments.duplex != "full":
        settings["duplex"] = arguments.duplex
    defaults = {"seed": 0, "latency": 1}
    for name, value in (settings | others).items():
        if value is not None and value != defaults.get(name):
            words += [f"--{name.replace('_', '-')}", str(value)]
    words += ["--large"] * arguments.large + ["--signed"] * getattr(arguments, "signed", False)
    words += ["--times", *map(str, arguments.times)] if arguments.times else []
    for node, port in _broken_links(schedule.topology, arguments):
        words += ["--broken-link", f"{node}:{schedule.topology.port_names[port]}"]
    return shlex.join(words)
