"""Fixtures for tests of synthesis: caches and records of tool runs."""

import tempfile

import pytest

from torusfabric.toolchain import tools
from torusfabric.toolchain.cache import Cache


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """A cache that is empty before the first test of a file."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def surroundings(monkeypatch, shared, tmp_path):
    """Share synthesis results among the tests of a file, and nothing with other caches."""
    monkeypatch.setenv("TORUSFABRIC_CACHE", str(shared))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


@pytest.fixture
def cache(tmp_path):
    """An empty cache."""
    return Cache(tmp_path / "cache")


@pytest.fixture
def runs(monkeypatch):
    """The list of tool runs, as (tool, module)."""
    calls = []
    real = tools.run

    def run(name, args, **options):
        calls.append((name, options["what"]))
        return real(name, args, **options)

    monkeypatch.setattr(tools, "run", run)
    return calls


@pytest.fixture
def no_runs(monkeypatch):
    """A function after whose call a run of a tool is an error."""

    def run(name, args, **options):
        raise AssertionError(f"{name} ran on {options['what']}")

    return lambda: monkeypatch.setattr(tools, "run", run)
