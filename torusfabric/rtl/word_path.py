"""The path of a word through a core, cycle by cycle, with the code that builds each stage.

The module answers questions such as "where is this flit after clock edge 7, and which function made
this register?". The path is the same for fabrics with fixed and with writable tables.
"""

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ..program import Program, fields
from ..program.follow import Holder, Moment, follow_flit
from ..program.timing import ADDRESS, DISTRIBUTION, SETTING
from ..toolchain.public import public
from ..topology import IntArray
from .core.node_module import NodeModule
from .core.router import PortOperators, Router
from .core.sequencer import Sequencer
from .core.slots import SlotCounters
from .core.store import StoreModule
from .distribution import ControlStage
from .memories import add_memory

__all__ = ["PathStage", "stage_code", "word_path"]

#: The function or class that builds a stage.
Code: TypeAlias = Callable[..., object]


class PathStage(NamedTuple):
    """One stage on the path of a word: a register or memory that holds it after a clock edge.

    A stage can also be a signal on the way to control the word, such as a read address.

    Parameters
    ----------
    cycle : int
        The clock edge; the edge that takes the start pulse is number 0.
    what : str
        A description of the stage.
    node : int
        The node; -1 outside the nodes.
    port : int
        The out-port, if the word is on a link; else -1.
    code : str
        The qualified name of the function that builds the stage, such as ``Router.add_logic``.
    file : str
        The file with this function, relative to the root of the repository.
    line : int
        The first line of this function.
    """

    cycle: int
    what: str
    node: int
    port: int
    code: str
    file: str
    line: int

    def __str__(self) -> str:
        return f"cycle {self.cycle:3}  {self.what:52} {self.file}:{self.line}"


@public
def word_path(program: Program, origin: int, destination: int, flit: int = 0) -> list[PathStage]:
    """Return the path of a flit through the hardware, stage by stage.

    It begins in the send memory of a node and ends in the memory of the receiver. A stage is a
    register or memory that holds the flit.

    Parameters
    ----------
    program : Program
        The program whose core is followed.
    origin, destination : int
        The sending node and the receiving node.
    flit : int
        The number of the flit in the message, from 0; in a reduce-scatter, in the share of the
        destination.

    Raises
    ------
    InputError
        In the cases listed in `torusfabric.program.follow.follow_flit`.

    Examples
    --------
    The cycles of the nine stages; the flit is stored in cycle 6.

    >>> import torusfabric as tf
    >>> program = tf.compile(tf.plan("3x3", "allgather", algorithm="matching"))
    >>> [stage.cycle for stage in word_path(program, 0, 1)]
    [0, 0, 1, 2, 3, 4, 4, 5, 6]
    """
    moments = follow_flit(program, origin, destination, flit)
    return [
        PathStage(cycle, what, node, port, *_code_location(code))
        for cycle, what, node, port, code in _path_stages(program, moments)
    ]


def stage_code(stages: list[PathStage]) -> dict[str, str]:
    """Return the source code that builds each stage: ``"file:line"`` -> text of the function."""
    root = Path(__file__).parents[2]
    found = {}
    for stage in stages:
        lines = (root / stage.file).read_text(encoding="utf-8").splitlines(keepends=True)
        found[f"{stage.file}:{stage.line}"] = "".join(inspect.getblock(lines[stage.line - 1 :]))
    return found


def _path_stages(
    program: Program, moments: list[Moment]
) -> Iterator[tuple[int, str, int, int, Code]]:
    """Yield each stage on the path of a word: its cycle, description, node, port and code.

    A stage is a register or memory that holds the word, or a signal that controls its path. The
    port is the number of an out-port, or -1. The code is the function that builds the stage.
    `moments` lists the steps of the word through the program in order of time, from `follow_flit`.
    """
    (_, _, sender, _), read = moments[:2]
    yield 0, f"the send memory of node {sender} has the word", sender, -1, add_memory
    yield from _address_stages(read.cycle - SETTING, sender)
    # Readers that share an injection port: an operator combines their words.
    shared = {
        reader for group in program.loop.sources.injections if len(group) > 1 for reader in group
    }
    for moment in moments[1:]:
        cycle, holder, node, number = moment
        if holder is Holder.LINK and _has_multiplexer(program, node, number):
            what = f"select register of {_out_port_name(program, moment)} is set"
            yield cycle - 1, what, node, -1, NodeModule.select_with_early_bits
        if holder is Holder.MEMORY:
            last = moment is moments[-1]
            what = f"{'the receive' if last else 'a'} memory of node {node} has stored it"
            yield cycle, what, node, -1, add_memory
        elif holder is Holder.READER:
            yield cycle, f"a memory of node {node} gives the word", node, -1, add_memory
            if number in shared:
                what = f"an operator of node {node} combines what it reads"
                yield cycle, what, node, -1, StoreModule.combine_readers
        elif holder is Holder.LINK:
            if _takes_early_result(program, node, number):
                what = f"an operator of node {node} combines it on its way to the out-port"
                yield cycle - 1, what, node, -1, PortOperators.add_port_operator
            what = f"{_out_port_name(program, moment)} has it"
            yield cycle, what, node, number, Router.add_logic
        else:
            yield cycle, *_stage_behind_port(program, moment)


def _address_stages(slot: int, node: int) -> Iterator[tuple[int, str, int, int, Code]]:
    """Yield the stages of the address by which a node reads a word, as in `_path_stages`.

    The first is in the sequencer in cycle `slot`, the last is a register of node `node`.
    """
    given = slot + ADDRESS - DISTRIBUTION
    yield slot, "the sequencer shows the row of its slot", -1, -1, SlotCounters.add_counters
    yield given, "the sequencer sends the address", -1, -1, Sequencer.drive_node_signals
    what = "a register near the group of the node has it"
    yield slot + ADDRESS - 1, what, -1, -1, ControlStage.elaborate
    what = f"a register of node {node} has it"
    yield slot + ADDRESS, what, node, -1, NodeModule.node_register


def _stage_behind_port(program: Program, moment: Moment) -> tuple[str, int, int, Code]:
    """Return the stage that holds a word behind an in-port: a register or an operator.

    `moment` is the cycle and the register. The result is a description, the node, -1 in place of an
    out-port, and the function that builds the stage.
    """
    _, holder, node, number = moment
    where = f"in-port {program.topology.port_names[number]} of node {node}"
    if holder is Holder.RESULT:
        return f"the operator at {where} has combined it", node, -1, PortOperators.add_port_operator
    if holder is Holder.DELAYED:
        return f"a register behind {where} has it", node, -1, NodeModule.word_value
    what = f"a register behind the operator at {where} has it"
    return what, node, -1, NodeModule.word_value


def _out_port_name(program: Program, moment: Moment) -> str:
    """Return the name of the out-port of `moment`, such as "out-port +0 of node 5"."""
    return f"out-port {program.topology.port_names[moment.number]} of node {moment.node}"


def _has_multiplexer(program: Program, node: int, port: int) -> bool:
    """Return True if an out-port of a node selects among several words, by a multiplexer."""
    return len(_out_port_sources(program, node, port)) > 1


def _takes_early_result(program: Program, node: int, port: int) -> bool:
    """Return True if an out-port takes the result of an operator before its register.

    The out-port is `port` of the node `node`.
    """
    listed = program.loop.sources.by_number
    taken = (listed[source][0] for source in _out_port_sources(program, node, port).tolist())
    return fields.Stage.EARLY_RESULT in taken


def _out_port_sources(program: Program, node: int, port: int) -> IntArray:
    """Return the numbers, in `Sources`, of the words that an out-port of a node selects in any row.

    If the actions of a node depend on the root, words are counted for all roots.
    """
    settings = program.loop.selected_sources[:, :, port]
    own = settings if program.by_offset else settings[:, program.variant_of[node]]
    return np.unique(own[own >= 0])


def _code_location(code: Any) -> tuple[str, str, int]:
    """Return the qualified name, the file and the first line of the function `code`."""
    root = Path(__file__).parents[2]
    file = Path(inspect.getsourcefile(code) or "").relative_to(root).as_posix()
    return code.__qualname__, file, inspect.getsourcelines(code)[1]
