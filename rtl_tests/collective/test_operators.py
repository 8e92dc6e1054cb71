"""Operators of reductions against Python's integers."""

import functools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from torusfabric.collective import OPERATORS, SIGNED, Operator
from torusfabric.errors import InputError


def signed(word, width):
    """The value of a word in two's complement."""
    return word - (word >> (width - 1) << width)


EVERY = (*OPERATORS, *SIGNED)


def by_hand(name, a, b, width):
    name, _, is_signed = name.partition(":")
    value = (lambda w: signed(w, width)) if is_signed else (lambda w: w)
    return {
        "add": (a + b) % (1 << width),
        "and": a & b,
        "or": a | b,
        "xor": a ^ b,
        "min": min(a, b, key=value),
        "max": max(a, b, key=value),
    }[name]


@given(st.sampled_from(EVERY), st.integers(1, 80), st.data())
def test_combine(name, width, data):
    """Elementwise, of any width, with wrap-around."""
    word = st.integers(0, (1 << width) - 1)
    pairs = data.draw(st.lists(st.tuples(word, word), min_size=1, max_size=5))
    dtype = np.uint64 if width <= 64 else object
    a, b = np.array(pairs, dtype).T
    got = Operator.parse(name).combine(a, b, width)
    assert got.tolist() == [by_hand(name, x, y, width) for x, y in pairs]


@given(st.sampled_from(EVERY), st.integers(1, 70), st.data())
def test_identity(name, width, data):
    """The neutral word changes nothing."""
    operator, dtype = Operator.parse(name), np.uint64 if width <= 64 else object
    words = np.array([data.draw(st.integers(0, (1 << width) - 1))], dtype)
    neutral = np.array([operator.identity(width)], dtype)
    assert operator.combine(words, neutral, width).tolist() == words.tolist()
    assert operator.combine(neutral, words, width).tolist() == words.tolist()


@pytest.mark.parametrize("name", OPERATORS)
def test_reduce(name):
    """All rows, column by column."""
    rows = np.random.default_rng(1).integers(0, 1 << 16, (7, 3), np.uint64)
    got = Operator.parse(name).reduce(rows, 16).tolist()
    for column, value in zip(rows.T.tolist(), got, strict=True):
        assert value == functools.reduce(lambda a, b: by_hand(name, a, b, 16), column)


def test_operators_by_name():
    assert [Operator.parse(name).name for name in EVERY] == [*EVERY]
    assert str(Operator.parse("min:signed")) == "signed min"
    for name in ("sum", "add:signed", "max:unsigned", "max:", "max:signed:signed", ""):
        with pytest.raises(InputError, match=r"^Operator must be one of add, min, .*, not '"):
            Operator.parse(name)
