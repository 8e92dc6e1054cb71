"""Starts that ask for what there is not: which they are, and which errors say so."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ..program import Program

__all__ = ["Refused", "refused_starts"]

#: The numbers of errors, by what is wrong.
MODE, ROOT, LENGTH, OPERATION = 1, 2, 3, 4


class Refused(NamedTuple):
    """A start that is refused.

    Parameters
    ----------
    inputs : dict of str to int
        What it asks for.
    errors : frozenset of int
        The errors of which it shows one.
    """

    inputs: dict[str, int]
    errors: frozenset[int]


def refused_starts(program: Program, bits: dict[str, int]) -> Iterator[Refused]:
    """All starts that are refused.

    With a barrier among the modes it is commands that refuse those that there are not, and the
    control that starts no run for a barrier: the sequencer is asked for no such mode.

    Parameters
    ----------
    program : Program
    bits : dict of str to int
        The inputs that are sampled with a start, and how wide they are.

    Examples
    --------
    >>> import torusfabric as tf
    >>> program = tf.compile(tf.plan("3", "allgather"), max_flits=2)
    >>> [(start.inputs, sorted(start.errors)) for start in refused_starts(program, {"length": 2})]
    [({'length': 0}, [3]), ({'length': 3}, [3])]
    """
    values_of = {name: range(1 << width) for name, width in bits.items()}
    if program.barrier and "mode" in bits:
        values_of["mode"] = range(len(program.modes))
    for values in product(*values_of.values()):
        asked = dict(zip(bits, values, strict=True))
        errors = frozenset(_errors(program, asked))
        if errors:
            yield Refused(asked, errors)


def _errors(program: Program, asked: dict[str, int]) -> Iterator[int]:
    """What is wrong; a root, or an operator, counts in modes that have a choice of it."""
    number = asked.get("mode", 0)
    if number >= len(program.modes):
        yield MODE
    if "length" in asked and not 1 <= asked["length"] <= program.flits:
        yield LENGTH
    mode = program.modes[min(number, len(program.modes) - 1)]
    if mode.any_root and asked.get("root", 0) >= mode.groups.size:
        yield ROOT
    if mode.operators and asked.get("operation", 0) >= len(mode.operators):
        yield OPERATION
