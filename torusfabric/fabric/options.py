"""The options by which a user describes a fabric, on the command line and in `FabricSpec`.

Every command takes the options from here, so that one name means one thing everywhere. The strings
at the top are both declaration and help text: each line ``--name METAVAR: meaning`` is one option.
`SETTINGS` gives an option its reader, values and default. A function ``add_*`` adds one group of
options to a parser; `fabric_options` returns all of them.
"""

import argparse
from functools import cache
from typing import Any

from ..adapters.bus import options as bus
from ..adapters.streams import options as streams
from ..collective import COLLECTIVES, OPERATORS, SATURATING, SIGNED
from ..contract.options import (
    Option,
    add_options,
    options_of,
    parse_constants,
    parse_lengths,
    parse_node_or_any,
    parse_non_negative_int,
    parse_number,
    parse_positive_int,
    parse_positive_or_auto,
)
from ..planning.selection import OBJECTIVES, FormChoice
from ..schedule import Duplex
from .adapter_access import all_adapter_options

__all__ = ["FILE_OR_TOPOLOGY", "PLANNING_OPTIONS", "RUN_OPTIONS", "TOPOLOGY", "add_bus_option",
           "add_fabric_file_option", "add_fabric_options", "add_flits_option",
           "add_operator_options", "add_prefix_option", "add_ram_option", "add_run_options",
           "add_selection_arguments", "add_tables_options", "add_top_options",
           "fabric_options"]  # fmt: skip

#: Help text of TOPOLOGY.
TOPOLOGY = (
    "Network: side lengths of a torus (8x8, 7x7x7), twisted torus (8x4~4: wraps of axis 1 lead 4 "
    "further along axis 0; 4x4x8~2:0,1: wraps of axes 0 and 1 lead halfway round axis 2; "
    "lattice:ROW/ROW/.. for any twists), mesh:4x6, 8|x8 (no wrap along axis 0), arrowhead:ORDER, "
    "circulant:NODES:OFFSET,.., complete:NODES, cube:AXES or graph:FILE (two nodes a line: a link "
    "both ways, or one way below a line `directed`; an adjacency list, node-link JSON, GraphML, "
    "GML or a network of BookSim). Broken links and nodes follow a !, as in 8x8!0:+0,9."
)

#: Help text of TOPOLOGY in commands that also take a schedule file in its position.
FILE_OR_TOPOLOGY = f"{TOPOLOGY} Without COLLECTIVE: a schedule file, as after --plan."

#: Options that decide the algorithm.
ALGORITHM_TEXT = """
--algorithm NAME: Name of the algorithm, as torusfabric algorithms lists them. Default: the one with
    the fewest cycles at --flits, or without --flits the best for long messages.
--objective: Quantity by which an algorithm is chosen where none is named: cycles in hardware, or
    time in the papers' model with --costs. Default: cycles.
--costs NAME=VALUE,..: Constants of the papers' model: alpha to start a round of circuits, beta to
    start a step of store-and-forward, delta to switch a hop, tau to send a unit. Example:
    alpha=100,beta=100,tau=1.
"""

#: Options of algorithms, links and faults.
PLAN_OPTIONS_TEXT = """
--traffic FILE: Messages of a pattern, as CSV with the columns source, destinations, words and tag,
    or as a JSON object a line. Several patterns have one file each, joined by commas. Example:
    hot_spot.csv.
--counts FILE: Flits of each message, if they are unequal: a number for each origin (allgather,
    gather) or destination (scatter, reduce-scatter), or a matrix of lines (alltoall). Several modes
    take one file for all, or one each, joined by commas.
--root NODE: Node that sends or receives, by number or name, or any for hardware that takes the
    root at each start. Default: 0.
--ports A: Largest number of messages that a node sends at once. Default: all ports.
--chunks C: Number of parts into which a message is cut. Default: the algorithm's own.
--large: Take the variant of lee-code with more rounds and shorter messages.
--seed N: Seed of algorithms that search. Default: 0.
--latency K: Steps from the arrival of a block to its departure, or auto: for a table of sums, the
    number with the fewest cycles in hardware. Default: 1.
--link-latency K|AXIS:K|LINK=K,..: Cycles of a link, 1 to 64. Default: 1. Examples: 4 for all links,
    0:1,1:4 by axis, 2,5:+0=4 for some links, 2x1=8 for the links between the halves of axis 0.
--rate R|AXIS:R|LINK=R,..: Flits a cycle of a link, as a number or a ratio: p/q is p parallel links
    that each carry a flit every q cycles. Default: 1. Examples: 2 for all links, 0:2,1:1/2 by axis,
    5:+0=1/2 for some links, 2x1=1/2 for the links between the halves of axis 0, capacity/50 for
    an attribute of a graph file in units of 50.
--duplex: Use of a link: full carries a message each way at once, half one way at a time. Default:
    full.
--trees T: Number of spanning trees that a message uses at once, by spanning-tree and any-network.
    Default: the algorithm's own.
--packets P: Number of packets into which a tree's share of a message is cut. Default: the
    algorithm's own.
--times BETA TAU LENGTH: Start-up time of a step, time of a unit, and units of a message, from which
    spanning-tree computes the best number of packets. Example: 10 1 64.
--broken-link NODE:PORT: A link out of order, or one direction of it; may be repeated. Examples:
    9:+0, 9:+0:out.
--broken-node NODE: A node out of order, by number or name; the other nodes are renumbered, and the
    option may be repeated. Example: 9.
--broken-links FILE: File with one broken link NODE:PORT a line.
--relay NODE,..: Nodes that only pass on, as switches do, by number or name: they send and receive
    nothing of their own. May be repeated. Example: 3,4.
"""

#: Options for the length of a message: fixed, or chosen by each run up to a maximum.
FLITS = "--flits L: Flits of a message. Default: one for each chunk.{}\n"
MAX_FLITS = """
--max-flits L: Longest message in flits; each run chooses its length up to it. Takes the position of
    --flits.
"""

#: Options for the width of a flit, and for the operators of reductions.
WIDTH = "--width W: Bits of a flit, 1 to 1024. Default: 32.\n"
OPERATORS_TEXT = f"""
--op NAME: Operator by which a reduction combines words: {", ".join(OPERATORS)}, or
    {" or ".join(SIGNED)} of two's complement; {" or ".join(SATURATING)}, a sum that stops
    at the ends; or add, min or max of floating-point numbers, as in add:fp32, min:bf16 or
    max:fp16. Of several, as in add,max,max:signed, each run chooses one. Default: add.
--signed: Read words as two's complement, so that min and max mean min:signed and max:signed,
    and add:saturating means add:saturating:signed.
"""

#: Option for the number of schedules of a mode.
FORMS = """
--forms: Schedules of a mode for short and long messages, with --max-flits: short or long takes one,
    all takes all and chooses by the length of a run. Default: auto, those that save 1 %% of the
    cycles for 20 %% more look-up tables, and one below 64 flits.
"""

#: Help text of each top.
TOPS = {
    "host": "one memory-mapped port for all nodes",
    "core": "ports for each node",
    "stream": "a stream each way at each node",
}

#: Options for the ports of a fabric.
PORTS = """
--top: Ports of the fabric: {}. Default: {}.
--beat R: Flits that a port moves in one cycle (streams of nodes, host port, bus, core with
    memories): a power of two up to the flits of a message, of whole bytes, that fits the memories
    of the algorithm (docs/reference/streams.md#beats). Default: auto, the least with which streams
    do not limit the runs, else 1.
"""
PREFIX = """
--prefix NAME: Text with which the names of all modules begin. Default: nothing. Example:
    left_.
"""

#: Options for loadable tables, and for an existing fabric with loadable tables.
TABLES = """
--tables: Where the program of the nodes lies: rom fixes it in the hardware, ram loads it from
    images. Default: rom.
--rows R: with --tables ram: rows that all modes together may have. Default: as many as the
    collectives need.
--depth D: with --tables ram: largest number of cycles that a word may take from its row to its
    arrival. Default: as many as the collectives need.
--inputs all|COLLECTIVE,..: with --tables ram: inputs of the out-ports: all, or those that the
    listed collectives need as well. Default: those of the built-in collectives. Example:
    alltoall,reduce.
"""
FABRIC_FILE = """
--fabric MANIFEST: Path of manifest.json of an existing fabric that was built with --tables
    ram.
"""

#: For each option that is not free text: its reader or its values, and its default.
SETTINGS: dict[str, Any] = {
    **bus.SETTINGS,
    **streams.SETTINGS,
    "objective": {"choices": OBJECTIVES, "default": OBJECTIVES[0]},
    "costs": parse_constants,
    "root": parse_node_or_any,
    "ports": parse_positive_int,
    "chunks": parse_positive_int,
    "seed": (parse_non_negative_int, 0),
    "latency": (parse_positive_or_auto, 1),
    "duplex": {"choices": tuple(map(str, Duplex)), "default": "full"},
    "trees": parse_positive_int,
    "packets": parse_positive_int,
    "times": {"nargs": 3, "type": parse_number},
    "broken_link": {"action": "append", "default": []},
    "broken_node": {"action": "append", "default": []},
    "relay": {"action": "append", "default": []},
    "width": (parse_non_negative_int, 32),
    "flits": parse_non_negative_int,
    "max_flits": parse_non_negative_int,
    "forms": {"choices": tuple(map(str, FormChoice)), "default": str(FormChoice.AUTO)},
    "top": {"choices": tuple(TOPS), "default": "host"},
    "beat": (parse_positive_or_auto, "auto"),
    "prefix": {"default": ""},
    "tables": {"choices": ("rom", "ram"), "default": "rom"},
    "rows": parse_positive_int,
    "depth": parse_positive_int,
}

#: Options by which a simulation drives the ports of nodes, keyed by attribute name.
RUN_OPTIONS = options_of(streams.RUNS, **streams.SETTINGS)

#: Attribute names of options that a schedule file replaces, so that both together are refused.
PLANNING_OPTIONS = ("topology", "collective", *options_of(ALGORITHM_TEXT, PLAN_OPTIONS_TEXT))


def fabric_options() -> dict[str, Option]:
    """Return all options that describe a fabric and its adapter, keyed by attribute name.

    The attribute of ``--link-latency`` is ``link_latency``.
    """
    return _own_options() | all_adapter_options()


@cache
def _own_options() -> dict[str, Option]:
    """Return the options that describe a fabric, but not its adapter, keyed by attribute name."""
    texts = (
        ALGORITHM_TEXT,
        PLAN_OPTIONS_TEXT,
        WIDTH,
        FLITS,
        MAX_FLITS,
        FORMS,
        streams.BARRIER,
        OPERATORS_TEXT,
        PORTS,
        streams.PORTS,
        bus.OPTION,
        PREFIX,
        TABLES,
    )
    names = ("topology", "collective", "--plan")
    found = {name.strip("-"): Option((name,), "", {}) for name in names}
    return found | options_of(*texts, **SETTINGS)


def add_selection_arguments(
    parser: argparse.ArgumentParser,
    *,
    algorithm: bool = True,
    plan: bool = True,
    several: bool = False,
    topology_help: str = TOPOLOGY,
) -> None:
    """Add the arguments of a selection: TOPOLOGY, COLLECTIVE and the options for planning.

    Parameters
    ----------
    parser : ArgumentParser
        The parser of the command.
    algorithm : bool
        True if the command plans by one algorithm, so that ``--algorithm``, ``--objective`` and
        ``--costs`` are added; False if it treats all algorithms.
    plan : bool
        True if ``--plan FILE`` may replace TOPOLOGY and COLLECTIVE.
    several : bool
        True if there may be several collectives or files, separated by commas.
    topology_help : str
        Help text of TOPOLOGY.
    """
    kinds = f"Collective: {', '.join(list(COLLECTIVES)[:-1])} or {list(COLLECTIVES)[-1]}. Offsets "
    kinds += (
        "follow the last two, as in exchange[+0,(1,2)]; @ and axes follow any that runs in all "
    )
    kinds += "sub-tori spanned by these axes at once, as in allgather@1 or allreduce@0+2; @ and "
    kinds += "nodes in braces follow any that runs among these nodes, as in allgather@{0,1,5,9} or "
    kinds += "allreduce@{0-7}{8-15}; an "
    kinds += "algorithm follows a colon, as in allgather:matching."
    if several:
        kinds += " Several in one fabric are separated by commas; the links that one does without "
        kinds += "follow a !, as in allgather,allgather!0:+0."
    for name, text in (("topology", topology_help), ("collective", kinds)):
        positional = parser.add_argument(name, metavar=name.upper(), help=text)
        # Optional by `required`, not by nargs="?": argparse would then refuse the second positional
        # behind an option, as in `8x8 --width 16 allgather`.
        positional.required = not plan
    group = parser.add_argument_group("selection")
    if plan:
        files, more = ("[,FILE..]", " Several are separated by commas.") if several else ("", "")
        text = f"--plan FILE{files}: Schedule file, in place of TOPOLOGY COLLECTIVE.{more}\n"
        add_options(group, text)
    add_options(
        group, ALGORITHM_TEXT + PLAN_OPTIONS_TEXT if algorithm else PLAN_OPTIONS_TEXT, **SETTINGS
    )


def add_fabric_options(parser: argparse.ArgumentParser, *, compared: bool = False) -> None:
    """Add the options for width, message length, forms and operators.

    Parameters
    ----------
    parser : ArgumentParser
        The parser of the command.
    compared : bool
        True for a command that compares algorithms: ``--flits`` may be a range, and ``--forms`` and
        ``--barrier`` are left out.
    """
    group = parser.add_argument_group("hardware")
    add_options(group, WIDTH, **SETTINGS)
    add_flits_option(group, ranges=compared)
    forms = [] if compared else [FORMS, streams.BARRIER]
    add_options(group, MAX_FLITS, *forms, **SETTINGS)
    add_operator_options(group)


def add_operator_options(group: Any) -> None:
    """Add ``--op`` and ``--signed``, the operators of reductions, to `group`.

    Parameters
    ----------
    group : ArgumentParser or argument group
        The parser, or the group of its options, that gets the options.
    """
    add_options(group, OPERATORS_TEXT, **SETTINGS)


def add_flits_option(group: Any, *, ranges: bool = False) -> None:
    """Add ``--flits``, the length of a message. With `ranges` it may be a range or a list.

    Parameters
    ----------
    group : ArgumentParser or argument group
        The parser, or the group of its options, that gets the option.
    ranges : bool
        True to allow several lengths: a range ``A:B`` or a list ``A,B,..``.
    """
    more = " A range A:B or a list A,B,.. compares cycles over lengths." * ranges
    add_options(
        group, FLITS.format(more), flits=parse_lengths if ranges else parse_non_negative_int
    )


def add_bus_option(parser: argparse.ArgumentParser) -> None:
    """Add ``--bus`` to `parser`: the bus through which a processor reaches the fabric."""
    add_options(parser.add_argument_group("ports"), bus.OPTION, **SETTINGS)


def add_prefix_option(group: Any) -> None:
    """Add ``--prefix``, the beginning of the names of all Verilog modules, to `group`.

    Parameters
    ----------
    group : ArgumentParser or argument group
        The parser, or the group of its options, that gets the option.
    """
    add_options(group, PREFIX, **SETTINGS)


def add_ram_option(parser: argparse.ArgumentParser, *, auto: str) -> None:
    """Add ``--ram``: the rule that decides which kind of FPGA memory each memory of a node becomes.

    Parameters
    ----------
    parser : ArgumentParser
        The parser that gets the option.
    auto : str
        Text in the help that describes the rule ``auto``, the default.
    """
    text = f"""
        --ram RULE: Kind of RAM of the memories of nodes, STYLE[:DEPTH[xWIDTH]][@COUNT],..: tool,
            registers, distributed, block or ultra. A memory takes the first style whose DEPTH and
            WIDTH it does not exceed, and that COUNT memories do not have yet. Default: auto:
            {auto}. Example: distributed:32,block.
        """
    add_options(parser.add_argument_group("hardware"), text, ram={"default": "auto"})


def add_top_options(parser: argparse.ArgumentParser, *tops: str) -> None:
    """Add ``--top`` and the options of ports to a parser.

    Parameters
    ----------
    parser : ArgumentParser
        The parser that gets the options.
    *tops : str
        Values of ``--top``; the first is the default.
    """
    group = parser.add_argument_group("ports")
    ways = ", ".join(f"{top} ({TOPS[top]})" for top in tops)
    chosen = {"top": {"choices": tops, "default": tops[0]}}
    add_options(group, PORTS.format(ways, tops[0]), streams.PORTS, **SETTINGS | chosen)


def add_run_options(group: Any) -> None:
    """Add the options of a simulation of streams to `group`: ``--stall`` and ``--faults``.

    They are two probabilities: that a stream pauses in a cycle, and that a packet is faulty.
    """
    add_options(group, streams.RUNS, **SETTINGS)


def add_tables_options(parser: argparse.ArgumentParser) -> None:
    """Add ``--tables`` to `parser`, and the options for the sizes of loadable tables."""
    add_options(parser.add_argument_group("tables"), TABLES, **SETTINGS)


def add_fabric_file_option(parser: argparse.ArgumentParser, *, required: bool = False) -> None:
    """Add ``--fabric``, the manifest of an existing fabric with loadable tables.

    Parameters
    ----------
    parser : ArgumentParser
        The parser that gets the option.
    required : bool
        True if the command needs the option.
    """
    add_options(parser, FABRIC_FILE, fabric={"required": required})
