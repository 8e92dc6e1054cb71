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
from ..collective import COLLECTIVES, OPERATORS, SIGNED
from ..contract.options import (
    Option,
    add_options,
    constants,
    lengths,
    natural,
    node_or_any,
    options_of,
    positive,
    positive_or_auto,
    real,
)
from ..planning.selection import OBJECTIVES, FormChoice
from ..schedule import Duplex
from .adapted import every_option

__all__ = ["FILE_OR_TOPOLOGY", "PLANNED", "RUN_OPTIONS", "TOPOLOGY", "add_bus_option",
           "add_fabric_file", "add_fabric_options", "add_flits_option",
           "add_prefix_option", "add_ram_option", "add_run_options", "add_selection",
           "add_tables_options", "add_top_options", "fabric_options"]  # fmt: skip

#: Help text of TOPOLOGY.
TOPOLOGY = (
    "side lengths of a torus (8x8, 7x7x7, twisted 8x4~4), mesh:4x6, 8|x8 (no wrap along axis 0), "
    "arrowhead:ORDER, circulant:NODES:OFFSET,.., complete:NODES, cube:AXES or graph:FILE "
    "(node-link JSON, or two node numbers a line: a link both ways, or one way below a line "
    "`directed`); "
    "with ! and what is broken, 8x8!0:+0,9"
)

#: Help text of TOPOLOGY in commands that also take a schedule file in its position.
FILE_OR_TOPOLOGY = f"{TOPOLOGY}; if COLLECTIVE is left out, a schedule file, as after --plan"

#: Options that decide the algorithm.
CHOICE = """
--algorithm NAME: by default what takes the fewest cycles at --flits, or is best for long messages
--objective: what decides where no algorithm is named: cycles in hardware (default), or time in the
    papers' model with --costs
--costs NAME=VALUE,..: constants of that model, such as alpha=100,beta=100,tau=1: to start a round
    of circuits or a step of store-and-forward, to switch a hop (delta), and to send a unit
"""

#: Options of algorithms, links and faults.
OPTIONS = """
--root NODE: node that sends or receives (default 0), or any: hardware in which it is chosen at the
    start
--ports A: messages a node may send at once (default all)
--chunks C: parts that a message is cut into
--large: more rounds with shorter messages (lee-code)
--seed N: where a search starts (default 0); only for algorithms that search
--latency K: steps from the arrival of a block to its departure (default 1), or auto: for a table of
    sums, what needs the fewest cycles in hardware
--link-latency K|AXIS:K|LINK=K,..: cycles of a link, 1 to 64 (default 1): of all, by axis as in
    0:1,1:4, or of some links as in 2,5:+0=4
--duplex: whether a link carries a message each way at once (default full)
--trees T: spanning trees used at once, 1 or 2 (spanning-tree)
--packets P: packets a tree's share is cut into
--times BETA TAU LENGTH: times to start a step and to send a unit, and units of a message: take the
    number of packets that is best for them (spanning-tree)
--broken-link NODE:PORT: a link out of order, e.g. 9:+0, or one way 9:+0:out; may be repeated
--broken-node NODE: a node out of order: the others are renumbered; may be repeated
--broken-links FILE: file with one NODE:PORT a line
"""

#: Options for the length of a message: fixed, or chosen by each run up to a maximum.
FLITS = "--flits L: flits of a message (default one for each chunk){}\n"
MAX_FLITS = """
--max-flits L: in place of --flits: the length is chosen for each run, up to so many flits
"""

#: Options for the width of a flit, and for the operators of reductions.
WIDTH = "--width W: bits of a flit, 1 to 1024 (default 32)\n"
OPERATORS_TEXT = f"""
--op NAME: how a reduction combines words: {", ".join(OPERATORS)} (default add), or
    {" or ".join(SIGNED)} of two's complement; several (add,max,max:signed) are chosen among
    for each run
--signed: min and max are min:signed and max:signed
"""

#: Option for the number of schedules of a mode.
FORMS = """
--forms: with --max-flits, of algorithms of which each is the best for some lengths, that for short
    messages alone, that for long ones, or all, chosen by the length of a run (default those that
    save 1 %% of the cycles for 20 %% more look-up tables; below 64 flits one)
"""

#: Help text of each top.
TOPS = {
    "host": "behind one memory-mapped port",
    "core": "with ports for each node",
    "stream": "with a stream each way at each node",
}

#: Options for the ports of a fabric.
PORTS = """
--top: {} (default {})
--beat R: flits of a word of the streams of nodes, of the host port and the bus, or of the ports of
    a core with memories: a power of two up to the flits of a message, of whole bytes, that fits the
    memories of the algorithm (docs/reference/streams.md#beats); or auto, the least with which
    streams do not limit the runs, else 1 (default auto)
"""
PREFIX = "--prefix NAME: what the names of all modules begin with (default nothing)\n"

#: Options for loadable tables, and for an existing fabric with loadable tables.
TABLES = """
--tables: rom: what nodes do is fixed; ram: it lies in memories that are loaded (default rom)
--rows R: with --tables ram: rows that all modes together may have (default what they need)
--depth D: with --tables ram: cycles that a word may take from its row to its arrival (default what
    they need)
--inputs all|COLLECTIVE,..: with --tables ram: what out-ports can select: everything, or what these
    collectives need, too (default what is built in needs)
"""
FABRIC_FILE = "--fabric MANIFEST: manifest.json of a fabric with --tables ram that exists\n"

#: For each option that is not free text: its reader or its values, and its default.
SETTINGS: dict[str, Any] = {
    **bus.SETTINGS,
    **streams.SETTINGS,
    "objective": {"choices": OBJECTIVES, "default": OBJECTIVES[0]},
    "costs": constants,
    "root": node_or_any,
    "ports": positive,
    "chunks": positive,
    "seed": (natural, 0),
    "latency": (positive_or_auto, 1),
    "duplex": {"choices": tuple(map(str, Duplex)), "default": "full"},
    "trees": positive,
    "packets": positive,
    "times": {"nargs": 3, "type": real},
    "broken_link": {"action": "append", "default": []},
    "broken_node": {"action": "append", "default": []},
    "width": (natural, 32),
    "flits": natural,
    "max_flits": natural,
    "forms": {"choices": tuple(map(str, FormChoice)), "default": str(FormChoice.AUTO)},
    "top": {"choices": tuple(TOPS), "default": "host"},
    "beat": (positive_or_auto, "auto"),
    "prefix": {"default": ""},
    "tables": {"choices": ("rom", "ram"), "default": "rom"},
    "rows": positive,
    "depth": positive,
}

#: Options by which a simulation drives the ports of nodes, keyed by attribute name.
RUN_OPTIONS = options_of(streams.RUNS, **streams.SETTINGS)

#: Attribute names of options that a schedule file replaces, so that both together are refused.
PLANNED = ("topology", "collective", *options_of(CHOICE, OPTIONS))


def fabric_options() -> dict[str, Option]:
    """Return all options that describe a fabric and its adapter, keyed by attribute name."""
    return _own_options() | every_option()


@cache
def _own_options() -> dict[str, Option]:
    """Return the options that describe a fabric without an adapter, keyed by attribute name."""
    texts = (CHOICE, OPTIONS, WIDTH, FLITS, MAX_FLITS, FORMS, streams.BARRIER, OPERATORS_TEXT,
             PORTS, streams.PORTS, bus.OPTION, PREFIX, TABLES)  # fmt: skip
    names = ("topology", "collective", "--plan")
    found = {name.strip("-"): Option((name,), "", {}) for name in names}
    return found | options_of(*texts, **SETTINGS)


def add_selection(
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
    kinds = f"{', '.join(list(COLLECTIVES)[:-1])} or {list(COLLECTIVES)[-1]}; the last two "
    kinds += "followed by offsets (exchange[+0,(1,2)]), all by @ and axes "
    kinds += "(allgather@1, allreduce@0+2) in all sub-tori that these axes span at once, and by : "
    kinds += "and an algorithm"
    if several:
        kinds += "; several, separated by commas, in one fabric, each perhaps with ! and links "
        kinds += "that it does without (allgather,allgather!0:+0)"
    for name, text in (("topology", topology_help), ("collective", kinds)):
        positional = parser.add_argument(name, metavar=name.upper(), help=text)
        # Optional by `required`, not by nargs="?": argparse would then refuse the second positional
        # behind an option, as in `8x8 --width 16 allgather`.
        positional.required = not plan
    group = parser.add_argument_group("selection")
    if plan:
        files, more = ("[,FILE..]", "; several are separated by commas") if several else ("", "")
        text = f"--plan FILE{files}: a schedule file, in place of TOPOLOGY COLLECTIVE{more}\n"
        add_options(group, text)
    add_options(group, CHOICE + OPTIONS if algorithm else OPTIONS, **SETTINGS)


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
    add_options(group, MAX_FLITS, *forms, OPERATORS_TEXT, **SETTINGS)


def add_flits_option(group: Any, *, ranges: bool = False) -> None:
    """Add ``--flits``, the length of a message. With `ranges` it may be a range or a list."""
    more = "; A:B or A,B,.. compares cycles over a range or a list of lengths" * ranges
    add_options(group, FLITS.format(more), flits=lengths if ranges else natural)


def add_bus_option(parser: argparse.ArgumentParser) -> None:
    """Add ``--bus``, the bus through which a processor reaches the fabric."""
    add_options(parser.add_argument_group("ports"), bus.OPTION, **SETTINGS)


def add_prefix_option(group: Any) -> None:
    """Add ``--prefix``, the beginning of the names of all Verilog modules."""
    add_options(group, PREFIX, **SETTINGS)


def add_ram_option(parser: argparse.ArgumentParser, *, default: str | None, otherwise: str) -> None:
    """Add ``--ram``, the style of node memories; `otherwise` describes `default` in the help."""
    text = f"""
        --ram RULE: what memories of nodes are made of: STYLE[:DEPTH[xWIDTH]],.. of registers,
            distributed, block, ultra or auto, the first that is deep and wide enough (default
            {otherwise})
        """
    add_options(parser.add_argument_group("hardware"), text, ram={"default": default})


def add_top_options(parser: argparse.ArgumentParser, *tops: str) -> None:
    """Add ``--top`` with the values `tops`, the first of them the default, and ``--beat`` etc."""
    group = parser.add_argument_group("ports")
    ways = "; ".join(f"{top}: {TOPS[top]}" for top in tops)
    chosen = {"top": {"choices": tops, "default": tops[0]}}
    add_options(group, PORTS.format(ways, tops[0]), streams.PORTS, **SETTINGS | chosen)


def add_run_options(group: Any) -> None:
    """Add the options by which a simulation drives the ports of nodes."""
    add_options(group, streams.RUNS, **SETTINGS)


def add_tables_options(parser: argparse.ArgumentParser) -> None:
    """Add ``--tables``, and the options for the sizes of loadable tables."""
    add_options(parser.add_argument_group("tables"), TABLES, **SETTINGS)


def add_fabric_file(parser: argparse.ArgumentParser, *, required: bool = False) -> None:
    """Add ``--fabric``, the manifest of an existing fabric with loadable tables."""
    add_options(parser, FABRIC_FILE, fabric={"required": required})
