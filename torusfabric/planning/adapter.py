"""Programs for messages of one length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..collective import Operator
from ..errors import InputError
from ..program import SwitchProgram, compile_program, compile_rooted
from ..schedule import Schedule, Table

__all__ = ["Fabric", "Program", "compile"]


@dataclass(frozen=True)
class Program:
    """What every router and endpoint does, for messages of a fixed length.

    Parameters
    ----------
    switch_program : SwitchProgram
    flits : int
        Flits of a message.

    Examples
    --------
    >>> import torusfabric as tf
    >>> tf.compile(tf.plan("4x4", "allgather"), flits=64).cycles()
    258
    """

    switch_program: SwitchProgram
    flits: int

    @property
    def schedule(self) -> Schedule:
        """The schedule that is carried out."""
        return self.switch_program.schedule

    def cycles(self) -> int:
        """Clock edges from the start pulse to done."""
        return int(self.switch_program.cycles(self.flits))

    def execute(self, words: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """What each node receives, a row a node, where each sends a row of words."""
        received: np.ndarray[Any, Any] = self.switch_program.execute(words)
        return received


def compile(
    schedule: Schedule,
    *,
    flits: int | None = None,
    operators: Sequence[Operator | str] = (),
    root: str | None = None,
    **others: Any,
) -> Program:
    """Compile a schedule for messages of a length.

    Parameters
    ----------
    schedule : Schedule
    flits : int, optional
        Flits of a message, a multiple of the chunks; by default one for each chunk.
    operators : sequence of Operator or str
        How a reduction combines words, for the present one; by default it adds them.
    root : {"any"}, optional
        Whether the root of a broadcast is chosen at the start of each run.

    Returns
    -------
    Program

    Raises
    ------
    InputError
        If there is nothing to build, or it cannot be built.

    Examples
    --------
    >>> import torusfabric as tf
    >>> tf.compile(tf.plan("4x4", "allgather", algorithm="matching"), flits=4).cycles()
    19
    """
    for name in others:
        raise InputError(f"Option {name} of compile must be left out, it is not supported yet")
    if not isinstance(schedule, Schedule):
        raise InputError("Schedule must be one schedule, several in a fabric are not supported yet")
    collective = schedule.collective
    if operators and not collective.reducing:
        raise InputError(
            f"Operators must be left out for {collective.kind}, which combines nothing"
        )
    if len(operators) > 1:
        raise InputError("Operators must be one, several in a fabric are not supported yet")
    if collective.reducing and not collective.rooted and not isinstance(schedule, Table):
        raise InputError(
            f"Schedule of a {collective.kind} must be the same at every node for hardware, "
            "not differ between nodes"
        )
    if root is not None:
        if root != "any" or collective.root != 0:
            raise InputError(
                f"Root must be left out or be any, for a schedule from node 0, not {root!r}"
            )
        program = compile_rooted(schedule)
    else:
        chosen = [Operator(o) if isinstance(o, str) else o for o in operators]
        program = compile_program(schedule, chosen[0] if chosen else None)
    flits = schedule.chunks if flits is None else flits
    program.block_flits(flits)
    return Program(program, flits)


def Fabric(program: Program, *, width: int = 32, top: str = "host") -> Any:
    """The hardware of a program.

    Parameters
    ----------
    program : Program
    width : int
        Bits of a flit.
    top : str
        ``host``: one memory-mapped port serves all nodes, or ``core``: every node has ports of its
        own.

    Returns
    -------
    Fabric

    Examples
    --------
    >>> import torusfabric as tf
    >>> tf.Fabric(tf.compile(tf.plan("2x2", "allgather")), width=8).cycles
    4
    """
    from ..rtl import build_fabric

    return build_fabric(program.switch_program, width=width, flits=program.flits, top=top)
