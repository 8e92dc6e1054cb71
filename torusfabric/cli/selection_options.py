"""The options by which a user says what to plan: the same in every command."""

import argparse
from typing import Any

from ..collective import COLLECTIVES
from ..planning.selection import OBJECTIVES
from ..schedule import Duplex
from .arguments import (
    add_options,
    constants,
    natural,
    node_or_any,
    option_names,
    positive,
    positive_or_auto,
    real,
)

__all__ = ["FILE_OR_TOPOLOGY", "PLANNED", "TOPOLOGY", "add_selection"]

#: What TOPOLOGY is.
TOPOLOGY = (
    "side lengths of a torus (8x8, 7x7x7, twisted 8x4~4), mesh:4x6, 8|x8 (no wrap along axis 0), "
    "arrowhead:ORDER, circulant:NODES:OFFSET,.., complete:NODES, cube:AXES or graph:FILE "
    "(node-link JSON, or two node numbers a line: a link both ways, or one way below a line "
    "`directed`); "
    "with ! and what is broken, 8x8!0:+0,9"
)

#: What it is for a command that takes a schedule file in place of it.
FILE_OR_TOPOLOGY = f"{TOPOLOGY}; if COLLECTIVE is left out, a schedule file, as after --plan"

#: What decides which algorithm plans.
CHOICE = """
--algorithm NAME: by default what takes the fewest cycles at --flits, or is best for long messages
--objective: what decides where no algorithm is named: cycles in hardware (default), or time in the
    papers' model with --costs
--costs NAME=VALUE,..: constants of that model, such as alpha=100,beta=100,tau=1: to start a round
    of circuits or a step of store-and-forward, to switch a hop (delta), and to send a unit
"""

#: What a user may ask of an algorithm.
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

#: Arguments that say what to plan, which have no place beside a schedule file.
PLANNED = {"TOPOLOGY", "COLLECTIVE", *option_names(CHOICE + OPTIONS)}

#: What reads them, and what they are if they are not given.
SETTINGS: dict[str, Any] = {
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
}


def add_selection(
    parser: argparse.ArgumentParser,
    *,
    algorithm: bool = True,
    plan: bool = True,
    several: bool = False,
    topology_help: str = TOPOLOGY,
) -> None:
    """Add the arguments that select what to plan.

    Parameters
    ----------
    algorithm : bool
        Whether one algorithm is selected, not all that fit.
    plan : bool
        Whether a schedule file may be given instead.
    several : bool
        Whether there may be several collectives, or files.
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
        # With nargs="?" it could not stand behind an option that follows the other one.
        positional.required = not plan
    group = parser.add_argument_group("selection")
    if plan:
        files, more = ("[,FILE..]", "; several are separated by commas") if several else ("", "")
        text = f"--plan FILE{files}: a schedule file, in place of TOPOLOGY COLLECTIVE{more}\n"
        add_options(group, text)
    add_options(group, CHOICE + OPTIONS if algorithm else OPTIONS, **SETTINGS)
