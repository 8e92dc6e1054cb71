"""Words that a user executes a program on: plain lists, and integers with a sign."""

import numpy as np
import pytest

import torusfabric as tf

WORDS = [[-1, 3], [5, 4], [-7, -8]]


@pytest.mark.parametrize(("operator", "result"), [("add", [-3, -1]), ("max:signed", [5, 4])])
def test_integers_with_a_sign(operator, result):
    """Sums of negative numbers are negative, as wide as the words are."""
    program = tf.compile(tf.plan("3", "allreduce"), flits=2, operators=[operator])
    received = program.execute(np.array(WORDS))
    assert received.dtype == np.int64
    assert received.tolist() == [result] * 3


def test_sums_of_narrow_words():
    """Of words of eight bits, only these count."""
    program = tf.compile(tf.plan("3", "allreduce"), flits=2)
    assert program.execute(np.array(WORDS), width=8).tolist() == [[253, 255]] * 3


def test_lists():
    """Words need not be an array."""
    program = tf.compile(tf.plan("3", "allgather"), flits=2)
    assert program.execute(WORDS)[0].tolist() == [-1, 3, 5, 4, -7, -8]
