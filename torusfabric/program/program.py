"""`Program`: what all routers and endpoints of a fabric do, and what comes of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..collective import expected_words
from ..errors import InputError
from ..toolchain.public import public_class
from ..toolchain.values import positive
from .data import ProgramData
from .execute import Run, carry_out

__all__ = ["Program"]


@public_class
@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Program(ProgramData):
    """What all routers and endpoints of a fabric do; see `ProgramData` for what it consists of.

    Examples
    --------
    >>> import torusfabric as tf
    >>> program = tf.compile(tf.plan(tf.Torus(3, 3), "allgather", algorithm="matching"), flits=4)
    >>> program.cycles()
    13
    """

    def execute(
        self,
        words: np.ndarray,
        *,
        mode: int | None = None,
        length: int | None = None,
        root: int | None = None,
        operation: int | None = None,
        width: int = 64,
    ) -> np.ndarray:
        """Carry out the program on data, cycle by cycle, as the hardware does.

        Parameters
        ----------
        words : ndarray, shape (nodes, send words)
            What each node sends, as the host writes it: parts of `length` flits. Sums of negative
            integers are those of their lowest `width` bits.
        mode : int, optional
            Which of several collectives (default 0).
        length : int, optional
            Flits of a message, for a program of any length.
        root : int, optional
            The root of this run, for a program of any root (default 0).
        operation : int, optional
            The number of the operator of this run, for a program of several (default 0).
        width : int
            Bits of a word.

        Returns
        -------
        ndarray, shape (nodes, receive words)
            What the host reads at each node; 0 where nothing is delivered.

        Examples
        --------
        Every node sends its number, and receives the numbers of all.

        >>> import torusfabric as tf
        >>> program = tf.compile(tf.plan(tf.Torus(3, 3), "allgather", algorithm="matching"))
        >>> program.execute(np.arange(9)[:, None])[4]
        array([0, 1, 2, 3, 4, 5, 6, 7, 8])
        """
        number, words = self.mode_number(mode), np.asarray(words)
        chosen = self.modes[number]
        run = Run(self.length_of(length), self.root_of(number, root), chosen.operator_of(operation))
        layout = self.part(chosen.form_of(run.length, run.root)).layout
        self._require_words(words, layout.send_words(run.length))
        width = positive("Width", width)
        if run.operator:
            run.operator.check_width(width)
        sent = words
        if self.operators and words.dtype.kind == "i" and width <= 64:
            # As operators take them: without a sign, and no wider than they may be.
            sent = words.astype(np.uint64) & np.uint64((1 << width) - 1)
        return carry_out(self, number, sent, run, width).astype(words.dtype, copy=False)

    def _require_words(self, words: np.ndarray, count: int) -> None:
        """Refuse what nodes send if it is not an integer for each word of each node."""
        shape = self.topology.nodes, count
        if words.shape != shape or words.dtype.kind not in "iuO":
            raise InputError(
                f"Words must be integers of shape {shape}, a row for each node, not {words.dtype} "
                f"of shape {words.shape}"
            )

    def delivered(
        self,
        words: np.ndarray,
        *,
        mode: int | None = None,
        length: int | None = None,
        root: int | None = None,
        operation: int | None = None,
        width: int = 64,
    ) -> tuple[np.ndarray, np.ndarray]:
        """The words that a run is to bring every node, by the definition of the collective.

        Where an operator is not associative, the definition leaves the order open: then it is that
        of the program.

        Parameters
        ----------
        words, mode, length, root, operation, width
            As of `execute`.

        Returns
        -------
        words : ndarray, shape (nodes, receive words)
        receives : ndarray of bool, shape (nodes, receive words)
            What is delivered; other words have no meaning.

        Examples
        --------
        >>> import torusfabric as tf
        >>> program = tf.compile(tf.plan("3", "allreduce"))
        >>> program.delivered(np.arange(9, dtype=np.uint64).reshape(3, 3))[0][0]
        array([ 9, 12, 15], dtype=uint64)
        """
        operator = self.modes[self.mode_number(mode)].operator_of(operation)
        layout, words = self.part(self.form_of(mode, length)).layout, np.asarray(words)
        self._require_words(words, layout.send_words(self.length_of(length)))
        width = positive("Width", width)
        if operator is not None:
            operator.check_width(width)
        if root is not None:
            root = self.root_of(mode, root)
        expected, receives = expected_words(
            layout, words, operator=operator, width=width, root=root
        )
        if operator is not None and not operator.associative:
            expected = self.execute(
                words, mode=mode, length=length, root=root, operation=operation, width=width
            )
        return expected, receives
