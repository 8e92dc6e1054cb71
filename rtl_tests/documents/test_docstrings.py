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
    """The examples of a module and of its classes and functions give the stated results."""
    try:
        module = importlib.import_module(name)
    except torusfabric.MissingTool as missing:
        pytest.skip(str(missing))
    failed, _ = doctest.testmod(module)
    assert failed == 0
