"""The jobs of a self-test: what each run chooses, drawn by a hash of its number.

All choices are bits of one hash, which depends on the run and on a number that counts up until
every choice is one that there is: each value is as likely as any other, without a division.
"""

from collections.abc import Mapping
from itertools import count
from typing import TYPE_CHECKING

from .words import hash_word

if TYPE_CHECKING:
    from ...rtl.fabric import Fabric

__all__ = ["CHOICES", "DRAWING", "LETTERS", "choice_bits", "choices_of", "drawn_job"]

#: What a run may choose, by the names of the inputs of the fabric, and the commands that say so.
LETTERS = {"mode": "m", "length": "l", "root": "o", "operation": "k"}
CHOICES = tuple(LETTERS)

#: Stands in the hash where words have their destination, so that no word is like a job.
DRAWING = 0xFFFF


def choices_of(fabric: "Fabric") -> dict[str, range]:
    """What a run of a fabric chooses, by name, and the values that there are.

    Examples
    --------
    >>> import torusfabric as tf
    >>> choices_of(tf.Fabric(tf.compile(tf.plan("3", "allgather"), max_flits=12)))
    {'length': range(1, 13)}
    """
    program = fabric.program
    values = {
        "mode": lambda: range(len(program.modes)),
        "length": lambda: range(1, fabric.flits + 1),
        "root": lambda: range(program.root_groups.size),
        "operation": lambda: range(len(program.operators)),
    }
    return {name: values[name]() for name in CHOICES if name in fabric.netlist.inputs}


def drawn_job(choices: Mapping[str, range], run: int) -> dict[str, int]:
    """What a run chooses.

    Parameters
    ----------
    choices : dict of str to range
        As of `choices_of`.
    run : int

    Examples
    --------
    >>> choices = {"mode": range(3), "length": range(1, 13)}
    >>> drawn_job(choices, 1), drawn_job(choices, 2)
    ({'mode': 0, 'length': 11}, {'mode': 0, 'length': 10})
    """
    bits = choice_bits(choices)
    for attempt in count():
        word = hash_word(sum(bits.values()), run, 0, DRAWING, attempt & 0xFFFF)
        job = {}
        for name, size in bits.items():
            job[name], word = word & ((1 << size) - 1), word >> size
        if all(job[name] in values for name, values in choices.items()):
            break
    return job


def choice_bits(choices: Mapping[str, range]) -> dict[str, int]:
    """Bits of each choice."""
    return {name: max(values[-1].bit_length(), 1) for name, values in choices.items()}
