"""The cache stays below its limit, and what is cleared is its own."""

import os
import time

import pytest

from torusfabric.errors import InputError
from torusfabric.toolchain.cache import Cache, digest
from torusfabric.toolchain.cache_size import GRACE, clear, keep_below, size_limit, usage

LONG = GRACE + 100


def age(cache, key, seconds):
    """Let the last use of an entry be so long ago."""
    for path in (cache.folder / key[:2]).glob(f"{key}*"):
        os.utime(path, (time.time() - seconds,) * 2)


@pytest.fixture
def filled(tmp_path):
    """A cache with five entries of a thousand bytes and more, and their keys."""
    cache, source = Cache(tmp_path / "cache"), tmp_path / "source"
    source.write_bytes(bytes(1000))
    keys = [digest(number) for number in range(5)]
    for key in keys[:3]:
        cache.put_file(key, "a", source)
    for key in keys[3:]:
        cache.put(key, "x" * 1000)
    return cache, keys


def held(cache, keys):
    return [cache.get(key) is not None or cache.get_file(key, "a") is not None for key in keys]


@pytest.mark.parametrize(
    ("text", "size"),
    [("", 2 * 10**9), ("12345", 12345), ("500M", 5 * 10**8), ("2G", 2 * 10**9), ("0", 0),
     ("1.5 kB", 1500)],
)  # fmt: skip
def test_limit_is_set_by_a_variable(monkeypatch, text, size):
    monkeypatch.setenv("TORUSFABRIC_CACHE_LIMIT", text)
    assert size_limit() == size


@pytest.mark.parametrize("text", ["much", "-1", "1e9", "9" * 400, "2 cows"])
def test_limit_that_is_no_size(monkeypatch, text):
    monkeypatch.setenv("TORUSFABRIC_CACHE_LIMIT", text)
    with pytest.raises(InputError, match=r"^TORUSFABRIC_CACHE_LIMIT must be a size such as 500M"):
        Cache()


def test_usage(filled, tmp_path):
    cache, _ = filled
    assert usage(cache.folder).entries == 5
    assert 5000 < usage(cache.folder).bytes < 6000
    assert usage(tmp_path / "none") == (0, 0)


def test_what_was_used_last_stays(filled):
    cache, keys = filled
    for number, key in enumerate(keys):
        age(cache, key, LONG + 1000 * number)
    assert cache.get(keys[4]) is not None  # used now, which is noted
    keep_below(cache.folder, 10_000)
    assert all(held(cache, keys))
    for key in keys[:4]:
        age(cache, key, LONG + 1000 * keys.index(key))
    keep_below(cache.folder, 4500)
    assert held(cache, keys) == [True, True, False, False, True]


def test_what_is_in_use_stays(filled):
    cache, keys = filled
    keep_below(cache.folder, 10)
    assert all(held(cache, keys))


def test_cache_looks_at_its_limit_itself(filled, monkeypatch):
    cache, keys = filled
    for key in keys:
        age(cache, key, LONG)
    monkeypatch.setenv("TORUSFABRIC_CACHE_LIMIT", "3000")
    Cache(cache.folder).put(digest("new"), "x" * 1000)
    assert usage(cache.folder).bytes < 3000
    assert cache.get(digest("new")) is not None


def test_nothing_is_kept_with_a_limit_of_zero(filled, monkeypatch, tmp_path):
    monkeypatch.setenv("TORUSFABRIC_CACHE_LIMIT", "0")
    cache = Cache(tmp_path / "other")
    assert cache.put(digest("new"), [1]) == [1]
    assert cache.put_file(digest("file"), "a", tmp_path / "source") is None
    assert not (tmp_path / "other").exists()


def test_half_made_entries_of_the_dead_go(filled):
    cache, _ = filled
    for name, seconds in (("0" * 16, 10), ("1" * 16, 100_000)):
        (cache.folder / "ab").mkdir(exist_ok=True)
        path = cache.folder / "ab" / f".{name}.part"
        path.touch()
        os.utime(path, (time.time() - seconds,) * 2)
    keep_below(cache.folder, 10_000)
    assert [path.name[1] for path in (cache.folder / "ab").glob(".*")] == ["0"]


def test_clear_leaves_files_of_others(filled):
    cache, _ = filled
    with cache.lock(digest("lock")):
        pass
    mine = [cache.folder / "thesis.tex", cache.folder / "ab" / "notes.json",
            cache.folder / "src" / "main.c"]  # fmt: skip
    for path in mine:
        path.parent.mkdir(exist_ok=True)
        path.write_text("years of work")
    assert clear(cache.folder).entries == 5
    assert usage(cache.folder) == (0, 0)
    assert sorted(path for path in cache.folder.rglob("*") if path.is_file()) == sorted(mine)
    for path in mine:
        path.unlink()
    assert clear(cache.folder) == (0, 0)
