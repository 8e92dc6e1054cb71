"""A pytest plugin: run the tests that `MUTATION_TESTS` lists, a name a line, in this order."""

import os

import pytest


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep what is listed."""
    order = {name: n for n, name in enumerate(os.environ["MUTATION_TESTS"].splitlines())}
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in order])
    items[:] = sorted(
        (item for item in items if item.nodeid in order), key=lambda item: order[item.nodeid]
    )
