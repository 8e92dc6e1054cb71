"""Examples in docstrings run."""

import doctest
import importlib
import pkgutil

import pytest

import torusfabric

MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(torusfabric.__path__, "torusfabric.")
    if not module.name.endswith("__main__")
)


@pytest.mark.parametrize("name", ["torusfabric", *MODULES])
def test_examples(name):
    """Those of one module and its classes and functions."""
    failed, _ = doctest.testmod(importlib.import_module(name))
    assert failed == 0
