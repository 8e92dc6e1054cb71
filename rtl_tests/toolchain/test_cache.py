"""The cache: a value comes back complete or not at all, and faults of the cache are no errors."""

import multiprocessing
import os
import sys
import time
from pathlib import Path

import pytest

from torusfabric.errors import InputError
from torusfabric.toolchain.cache import Cache, RenewingCache, default_folder, digest, size_limit


@pytest.fixture
def filled(tmp_path: Path) -> tuple[Cache, list[str]]:
    """A cache with five entries of 40 kB, and their keys."""
    cache, keys = Cache(tmp_path / "cache"), [digest(number) for number in range(5)]
    for key in keys:
        cache.put(key, os.urandom(40_000))
    return cache, keys


def damage(cache: Cache, change) -> None:
    """Change the content of all files of a cache."""
    for path in cache.folder.rglob("*"):
        if path.is_file():
            path.write_bytes(change(path.read_bytes()))


def test_variable_names_the_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("TORUSFABRIC_CACHE", str(tmp_path / "here"))
    assert default_folder() == tmp_path / "here"
    assert Cache().folder == tmp_path / "here"
    assert Cache(tmp_path).folder == tmp_path
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TORUSFABRIC_CACHE", "here")
    assert default_folder() == tmp_path / "here"  # also if tools run in another folder


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the rules of Linux")
def test_folder_follows_the_platform(monkeypatch, tmp_path):
    monkeypatch.delenv("TORUSFABRIC_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert default_folder() == tmp_path / "xdg" / "torusfabric"


def test_different_values_have_different_digests():
    values = [("a", "b"), ("ab",), ("a", ["b"]), ("b", "a"), ("a", "b", 1), ("a", "b", "1"), ()]
    assert len({digest(*value) for value in values}) == len(values)
    assert digest({"x": 1, "y": 2}) == digest({"y": 2, "x": 1})


def test_value_comes_back(tmp_path):
    cache, key = Cache(tmp_path), digest("k")
    assert cache.get(key) is None
    assert cache.put(key, {(1, 2): {3}}) == {(1, 2): {3}}
    assert cache.get(key) == {(1, 2): {3}}
    assert cache.get(digest("other")) is None
    cache.put(key, 5)
    assert Cache(tmp_path).get(key) == 5
    assert RenewingCache(tmp_path).get(key) is None


def test_files_come_back(tmp_path):
    """Files of an entry are restored together or not at all, with their modes."""
    cache, out = Cache(tmp_path / "cache"), tmp_path / "out"
    program, text = tmp_path / "program", tmp_path / "text"
    out.mkdir()
    program.write_bytes(bytes(range(256)))
    program.chmod(0o755)
    text.write_text("words")
    assert not cache.fetch_files("abcd", ["p"], out)
    cache.put_files("abcd", {"p": program, "t": text})
    cache.put_files("abce", {"p": tmp_path / "missing"})
    assert not cache.fetch_files("abcd", ["p", "t", "u"], out)
    assert not cache.fetch_files("abce", ["p"], out)
    assert not RenewingCache(cache.folder).fetch_files("abcd", ["p"], out)
    assert list(out.iterdir()) == []
    assert cache.fetch_files("abcd", ["p", "t"], out)
    assert (out / "p").read_bytes() == program.read_bytes()
    assert (out / "p").stat().st_mode == program.stat().st_mode
    assert (out / "t").read_text() == "words"


@pytest.mark.parametrize(
    "change",
    [lambda old: old[: len(old) // 2], lambda old: b"", lambda old: os.urandom(len(old)),
     lambda old: old[:-8] + bytes([old[-8] ^ 1]) + old[-7:]],
)  # fmt: skip
def test_damaged_cache_begins_anew(filled, change):
    """A damaged cache gives no wrong value and no error, and keeps later values."""
    cache, keys = filled
    whole = {key: cache.get(key) for key in keys}
    damage(cache, change)
    for again in (cache, Cache(cache.folder)):
        assert all(again.get(key) in (None, whole[key]) for key in keys)
    for value in (1, 2):  # the first one may find the damage
        cache.put(keys[0], value)
    assert Cache(cache.folder).get(keys[0]) == 2


class Gone:
    """A class that another version lacks."""


def test_value_of_another_version_is_a_miss(tmp_path, monkeypatch):
    cache = Cache(tmp_path)
    cache.put("abcd", Gone())
    monkeypatch.delitem(globals(), "Gone")
    assert cache.get("abcd") is None


def test_folder_that_cannot_be_made_does_no_harm(tmp_path):
    (tmp_path / "file").write_text("in the way")
    cache = Cache(tmp_path / "file" / "cache")
    assert cache.put("abcd", [1]) == [1]
    assert cache.get("abcd") is None
    assert cache.usage() == cache.clear() == (0, 0)
    with cache.lock("warm"):
        pass


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write")
def test_folder_that_cannot_be_written_does_no_harm(filled):
    cache, keys = filled
    for folder, mode in ((cache.folder, 0o500), (cache.folder / "entries", 0o500)):
        folder.chmod(mode)
        assert Cache(cache.folder).put(keys[0], [1]) == [1]
        assert Cache(cache.folder).get("abcd") is None
        folder.chmod(0o700)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no limits of files")
def test_full_disk_does_no_harm(tmp_path):
    """An entry that does not fit on the disk is not kept."""
    import resource

    def fill(folder):
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        cache = Cache(folder)
        for number in range(10):
            value = os.urandom(30_000 * (number + 1))
            assert cache.put(digest(number), value) == value
            assert cache.get(digest(number)) in (None, value)

    process = multiprocessing.get_context("fork").Process(target=fill, args=(tmp_path,))
    process.start()
    process.join()
    assert process.exitcode == 0
    assert Cache(tmp_path).get(digest(0)) is not None


def _hammer(folder, worker, keys):
    cache = Cache(folder)
    for turn in range(60):
        key = keys[turn % len(keys)]
        cache.put(key, {"by": worker, "text": key * 500})
        value = cache.get(key)
        if value is None or value["text"] != key * 500:
            sys.exit(1)


def _count_up(folder, times):
    for _ in range(times):
        with Cache(folder).lock("counter"):
            path = folder / "counter"
            path.write_text(str(int(path.read_text()) + 1))


def _at_once(function, *arguments):
    """Run a function in several processes, each of which must succeed."""
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=function, args=each) for each in arguments]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert {worker.exitcode for worker in workers} == {0}


def test_processes_do_not_disturb_each_other(tmp_path):
    _at_once(_hammer, *((tmp_path, n, ["aaaa", "aabb", "cccc"]) for n in range(3)))
    assert Cache(tmp_path).usage().entries == 3


def test_lock_lets_one_in_at_a_time(tmp_path):
    (tmp_path / "counter").write_text("0")
    _at_once(_count_up, *[(tmp_path, 200)] * 2)
    assert (tmp_path / "counter").read_text() == "400"


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="needs owners of files")
def test_what_others_may_write_is_not_used(filled):
    """The folder of entries admits its owner only, because loading an entry runs code. A folder of
    another owner is not used.
    """
    cache, keys = filled
    entries = cache.folder / "entries"
    assert entries.stat().st_mode & 0o777 == 0o700
    if os.getuid() == 0:
        os.chown(entries, 12345, -1)
        assert cache.get(keys[0]) is None
        cache.put(digest("new"), 1)
        assert cache.get(digest("new")) is None


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
    assert cache.usage().entries == 5
    assert 200_000 < cache.usage().bytes < 250_000
    assert Cache(tmp_path / "none").usage() == (0, 0)
    assert not (tmp_path / "none").exists()


def test_what_was_used_last_stays(filled, monkeypatch):
    """Entries that were not used for longest are removed beyond the size limit."""
    cache, keys = filled
    for key in (keys[3], keys[1]):
        time.sleep(0.01)
        assert cache.get(key) is not None
    monkeypatch.setenv("TORUSFABRIC_CACHE_LIMIT", "500k")
    cache = Cache(cache.folder)
    for number in range(10):
        cache.put(digest("new", number), os.urandom(30_000))
        assert cache.get(keys[1]) is not None
    assert cache.get(keys[0]) is None
    assert cache.get(digest("new", 9)) is not None
    assert cache.usage().bytes < 600_000


def test_nothing_is_kept_with_a_limit_of_zero(monkeypatch, tmp_path):
    monkeypatch.setenv("TORUSFABRIC_CACHE_LIMIT", "0")
    cache = Cache(tmp_path / "other")
    assert cache.put(digest("new"), [1]) == [1]
    assert cache.get(digest("new")) is None
    assert not (tmp_path / "other").exists()


def test_clear_leaves_files_of_others(filled):
    cache, keys = filled
    with cache.lock(digest("lock")):
        pass
    mine = [cache.folder / "thesis.tex", cache.folder / "src" / "main.c"]
    for path in mine:
        path.parent.mkdir(exist_ok=True)
        path.write_text("years of work")
    other = Cache(cache.folder)
    assert other.get(keys[0]) is not None
    assert cache.clear().entries == 5
    assert cache.usage() == (0, 0)
    assert sorted(path for path in cache.folder.rglob("*") if path.is_file()) == sorted(mine)
    assert other.get(keys[0]) is None
    for _ in range(2):  # the first attempt notices that the database is gone
        other.put(keys[0], 1)
    assert cache.get(keys[0]) == 1
