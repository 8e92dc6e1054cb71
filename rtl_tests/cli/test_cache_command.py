"""The command that shows and clears the cache."""

import json
import random

import pytest

from torusfabric.cli import main
from torusfabric.toolchain import tools
from torusfabric.toolchain.cache import Cache, digest


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    """A cache with one entry."""
    monkeypatch.setenv("TORUSFABRIC_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("TORUSFABRIC_CACHE_LIMIT", "1M")
    cache = Cache()
    cache.put(digest(1), random.Random(1).randbytes(950))
    return cache


def test_cache_is_shown(cache, capsys):
    """The command shows folder, entries, size and limit of the cache."""
    assert main(["cache"]) == 0
    lines = dict(line.split(None, 1) for line in capsys.readouterr().out.splitlines())
    assert lines["folder"] == f"{cache.folder} (TORUSFABRIC_CACHE names another)"
    assert lines["entries"] == "1"
    assert 1 <= float(lines["size"].removesuffix(" kB")) < 50
    assert lines["limit"] == "1.0 MB (TORUSFABRIC_CACHE_LIMIT sets another)"


def test_cache_is_cleared(cache, capsys):
    """The command clears the cache, and reports the number of removed entries."""
    assert main(["cache", "--clear"]) == 0
    assert "removed  1 entries, " in capsys.readouterr().out
    assert cache.get(digest(1)) is None
    assert main(["cache", "--clear", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "version": 1, "folder": str(cache.folder), "entries": 0, "bytes": 0, "limit": 1_000_000,
        "removed": {"entries": 0, "bytes": 0},
    }  # fmt: skip


def test_limit_that_is_no_size(monkeypatch, capsys):
    """A cache limit that is no size is refused by the commands that use the cache."""
    tools.require("yosys")  # the limit is read even if the tool is ready in this process
    monkeypatch.setenv("TORUSFABRIC_CACHE_LIMIT", "a lot")
    for words in (["cache"], ["synth", "2x2", "allgather", "--target", "ice40-hx8k"]):
        assert main(words) == 1
        assert capsys.readouterr().err == (
            "torusfabric: TORUSFABRIC_CACHE_LIMIT must be a size such as 500M or 2G, not 'a lot'\n"
        )
