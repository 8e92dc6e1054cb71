"""The order in which a run combines the words of nodes: for each sum, a tree of additions.

`Program.operand_orders` finds the trees by executing the program on numbers that stand for sums. In
a *tree* such as ``((0 1) 2)`` the words of nodes 0 and 1 are combined first, and their result with
the word of node 2. The *depth* of a tree is the largest number of combinations that a word passes,
here 2. The trees depend on the program, the length and the root, and on nothing else.

The error bound of a floating-point sum follows from the depth d (N. J. Higham, "Accuracy and
Stability of Numerical Algorithms", 2nd ed., section 4.2). With the unit roundoff u, the largest
relative error of one addition, it is ((1 + u)^d - 1) times the sum of all magnitudes.

`execute_with_function` executes a program with any function in place of its operators, for readers
that need to know how words are combined.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ..collective import Operator
from ..errors import InputError
from ..topology import IntArray

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..collective import Words
    from .program import Program

    Combine: TypeAlias = Callable[[Words, Words, int], Words]

__all__ = ["OperandOrders", "execute_with_function", "find_operand_orders"]

#: Most trees that a report has as text.
REPORTED_TREES = 64


@dataclass(frozen=True)
class OperandOrders:
    """The trees by which the sums of a run are formed.

    Parameters
    ----------
    trees : tuple of str
        Different trees, such as ``((0 1) 2)``; the numbers are those of nodes.
    tree_of_word : ndarray of int, shape (nodes, receive words)
        Number of the tree of each received word; -1 for a word that is not delivered.
    depth : int
        Largest number of combinations that a word passes.
    error_bound : float
        Bound of the error of a floating-point sum, relative to the sum of all magnitudes, unless a
        sum overflows; 0 for operators without rounding.
    """

    trees: tuple[str, ...]
    tree_of_word: IntArray
    depth: int
    error_bound: float

    def to_json(self) -> dict[str, Any]:
        """Return the entries of a report: number of trees, first trees, depth and error bound."""
        return {
            "tree_count": len(self.trees),
            "trees": list(self.trees[:REPORTED_TREES]),
            "depth": self.depth,
            "error_bound": self.error_bound,
        }


class _TreeNumbers:
    """A numbering of trees: 0 for no word, v + 1 for the word of node v, further ones for pairs."""

    def __init__(self, nodes: int) -> None:
        self._texts = ["", *map(str, range(nodes))]
        self._depths = [0] * (nodes + 1)
        self._known: dict[tuple[int, int], int] = {}

    def combine_numbers(self, a: Words, b: Words, width: int) -> Words:
        """Return the numbers of the trees that combine trees `a` and trees `b`."""
        low, high = np.minimum(a, b), np.maximum(a, b)
        result: Words = high.copy()
        pairs, inverse = np.unique(np.stack([low, high])[:, low > 0], axis=1, return_inverse=True)
        numbers = [self._number_of_pair(x, y) for x, y in pairs.T.tolist()]
        result[low > 0] = np.array(numbers, result.dtype)[inverse.ravel()]
        return result

    def _number_of_pair(self, a: int, b: int) -> int:
        if (a, b) not in self._known:
            self._known[a, b] = len(self._texts)
            self._texts.append(f"({self._texts[a]} {self._texts[b]})")
            self._depths.append(1 + max(self._depths[a], self._depths[b]))
        return self._known[a, b]

    def read_orders(self, received: Words, roundoff: float) -> OperandOrders:
        """Return the orders of the received sums, which are numbers of trees."""
        numbers, tree_of_word = np.unique(received, return_inverse=True)
        found = numbers.tolist()
        skipped = found[:1] == [0]
        depth = max((self._depths[number] for number in found), default=0)
        return OperandOrders(
            tuple(self._texts[number] for number in found[skipped:]),
            tree_of_word.reshape(received.shape) - skipped,
            depth,
            (1 + roundoff) ** depth - 1,
        )


def execute_with_function(
    program: Program,
    words: Words,
    function: Combine,
    *,
    mode: int | None = None,
    length: int | None = None,
    root: int | None = None,
) -> Words:
    """Return the received words of a run in which a function takes the place of the operator.

    Parameters
    ----------
    program : Program
        The program, whose operators are replaced.
    words : ndarray of uint64, shape (nodes, send words)
        Words to send, none of them 0.
    function : callable
        Function of two arrays of words and their width, which combines them. One of two words may
        be 0, the identity word; the result is then the other.
    mode, length, root
        Parameters of `Program.execute`.
    """
    operator = Operator("function", function, lambda width: 0, lambda m, a, b: a, associative=False)
    forms = (replace(each, operators=(operator,) * bool(each.operators)) for each in program.forms)
    changed = replace(program, forms=tuple(forms))
    return changed.execute(words, mode=mode, length=length, root=root)


def find_operand_orders(
    program: Program, *, mode: int | None, length: int | None, root: int | None
) -> OperandOrders:
    """Return the trees by which a run of a program combines words; see `Program.operand_orders`."""
    number = program.mode_number(mode)
    operators = program.modes[number].operators
    if not operators:
        raise InputError(
            "Operands have an order in a reduction (reduce, reduce-scatter, allreduce), not in "
            f"{program.name_of(program.modes[number])}"
        )
    nodes = program.topology.nodes
    numbers = _TreeNumbers(nodes)
    chosen = program.form_of(number, program.length_of(length), program.root_of(number, root))
    count = program.part(chosen).layout.send_words(program.length_of(length))
    words = np.repeat(np.arange(1, nodes + 1, dtype=np.uint64)[:, None], count, axis=1)
    received = execute_with_function(
        program, words, numbers.combine_numbers, mode=mode, length=length, root=root
    )
    return numbers.read_orders(received, max(each.unit_roundoff for each in operators))
