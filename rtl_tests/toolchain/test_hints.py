"""What a user probably meant."""

import pytest

from torusfabric.toolchain.values import hint, no_such


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("Hamilton", " (did you mean hamiltonian?)"),
        ("matchng", " (did you mean matching?)"),
        ("x", ""),
        ("", ""),
        (3, ""),
    ],
)
def test_nearest_name(name, meant):
    assert hint(name, ["hamiltonian", "matching", "max-flow"]) == meant


def test_equally_near_names():
    assert hint("ad", ["add", "and", "or"]) == " (did you mean add or and?)"


def test_nothing_is_known():
    assert hint("x", []) == ""


def test_the_message():
    error = no_such("Target", "ecp5-25", ["ice40", "ecp5-25k", "ecp5-45k"], more=", or a file")
    assert str(error) == (
        "Target must be one of ice40, ecp5-25k, ecp5-45k, or a file, not 'ecp5-25' "
        "(did you mean ecp5-25k?)"
    )
    assert error.status == 1
