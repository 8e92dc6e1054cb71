"""What tests of synthesis share: a cache, and what tools run."""

import tempfile

import pytest

from torusfabric.toolchain import tools
from torusfabric.toolchain.cache import Cache


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """A cache that is empty before the first test of this file."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def surroundings(monkeypatch, shared, tmp_path):
    """Share what is synthesized among tests, but nothing with the outside."""
    monkeypatch.setenv("TORUSFABRIC_CACHE", str(shared))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


@pytest.fixture
def cache(tmp_path):
    """An empty cache."""
    return Cache(tmp_path / "cache")


@pytest.fixture
def runs(monkeypatch):
    """What tools run, as (tool, module)."""
    calls = []
    real = tools.run

    def run(name, args, **options):
        calls.append((name, options["what"]))
        return real(name, args, **options)

    monkeypatch.setattr(tools, "run", run)
    return calls


@pytest.fixture
def no_runs(monkeypatch):
    """A function after whose call tools may not run."""

    def run(name, args, **options):
        raise AssertionError(f"{name} ran on {options['what']}")

    return lambda: monkeypatch.setattr(tools, "run", run)
