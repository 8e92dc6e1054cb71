"""The cache: what is put is got back, whole or not at all, and nothing ever fails because of it."""

import multiprocessing
import os
import sys
import time
from pathlib import Path

import pytest

from torusfabric.errors import InputError
from torusfabric.toolchain.cache import (
    GRACE,
    Cache,
    RenewingCache,
    clear,
    default_folder,
    digest,
    keep_below,
    size_limit,
    usage,
)

LONG = GRACE + 100


def entry(cache: Cache, key: str) -> Path:
    """The file of an entry."""
    return cache.folder / key[:2] / f"{key}.kept"


def age(cache: Cache, key: str, seconds: float) -> None:
    """Let the last use of an entry be so long ago."""
    os.utime(entry(cache, key), (time.time() - seconds,) * 2)


@pytest.fixture
def filled(tmp_path: Path) -> tuple[Cache, list[str]]:
    """A cache with five entries of a thousand bytes and more, and their keys."""
    cache, keys = Cache(tmp_path / "cache"), [digest(number) for number in range(5)]
    for key in keys:
        cache.put(key, os.urandom(1000))
    return cache, keys


def test_variable_names_the_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("TORUSFABRIC_CACHE", str(tmp_path / "here"))
    assert default_folder() == tmp_path / "here"
    assert Cache().folder == tmp_path / "here"
    assert Cache(tmp_path).folder == tmp_path
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TORUSFABRIC_CACHE", "here")
    assert default_folder() == tmp_path / "here"  # wherever tools run


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
    """Files are there together or not at all, and keep their modes."""
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


def test_damaged_entry_is_a_miss(tmp_path):
    cache = Cache(tmp_path)
    cache.put("abcd", {"luts": 12345})
    path = entry(cache, "abcd")
    whole = path.read_bytes()
    changed = whole[:-8] + bytes([whole[-8] ^ 1]) + whole[-7:]
    for damaged in (whole[:-3], changed, b"\xff\xfe\x00", b"[1]", b""):
        path.write_bytes(damaged)
        assert cache.get("abcd") is None
    path.write_bytes(whole)
    path.rename(entry(cache, "abce"))
    assert cache.get("abce") is None
    entry(cache, "abcf").mkdir()
    assert cache.get("abcf") is None


class Gone:
    """A class that another version does not have."""


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
    with cache.lock("warm"):
        pass


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write")
def test_folder_that_cannot_be_written_does_no_harm(tmp_path):
    tmp_path.chmod(0o500)
    assert Cache(tmp_path).put("abcd", [1]) == [1]
    assert Cache(tmp_path).get("abcd") is None
    tmp_path.chmod(0o700)


def test_failed_write_leaves_nothing(tmp_path, monkeypatch):
    def no_rename(*_):
        raise OSError("disk full")

    monkeypatch.setattr(Path, "replace", no_rename)
    Cache(tmp_path).put("abcd", [1])
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


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
    """Run a function in three processes, each of which must succeed."""
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=function, args=each) for each in arguments]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert {worker.exitcode for worker in workers} == {0}


def test_processes_do_not_disturb_each_other(tmp_path):
    keys = ["aaaa", "aabb", "cccc"]
    _at_once(_hammer, *((tmp_path, n, keys) for n in range(3)))
    files = sorted(path.name for path in tmp_path.rglob("*") if path.is_file())
    assert files == [f"{key}.kept" for key in keys]


def test_lock_lets_one_in_at_a_time(tmp_path):
    (tmp_path / "counter").write_text("0")
    _at_once(_count_up, *[(tmp_path, 200)] * 2)
    assert (tmp_path / "counter").read_text() == "400"


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="needs owners of files")
def test_what_others_may_write_is_not_used(tmp_path):
    """A library is run, and its digest lies beside it: whoever can write one can write both.

    Others may read what root, say, has made.
    """
    key, cache = digest("k"), Cache(tmp_path)
    before = os.umask(0)
    try:
        cache.put(key, 1)
    finally:
        os.umask(before)
    assert cache.get(key) == 1
    assert entry(cache, key).stat().st_mode & 0o777 == 0o644
    entry(cache, key).chmod(0o666)
    assert cache.get(key) is None
    cache.put(key, 2)
    assert cache.get(key) == 2
    if os.getuid() == 0:
        os.chown(entry(cache, key), 12345, -1)
        assert cache.get(key) is None


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
    assert usage(cache.folder).entries == 5
    for number, key in enumerate(keys[:4]):
        age(cache, key, LONG + 1000 * number)
    keep_below(cache.folder, 4500)
    assert [entry(cache, key).exists() for key in keys] == [True, True, False, False, True]


def test_what_is_in_use_stays(filled):
    cache, _ = filled
    keep_below(cache.folder, 10)
    assert usage(cache.folder).entries == 5


def test_cache_looks_at_its_limit_itself(filled, monkeypatch):
    cache, keys = filled
    for key in keys:
        age(cache, key, LONG)
    monkeypatch.setenv("TORUSFABRIC_CACHE_LIMIT", "3000")
    Cache(cache.folder).put(digest("new"), os.urandom(1000))
    assert usage(cache.folder).bytes < 3000
    assert cache.get(digest("new")) is not None


def test_nothing_is_kept_with_a_limit_of_zero(monkeypatch, tmp_path):
    monkeypatch.setenv("TORUSFABRIC_CACHE_LIMIT", "0")
    cache = Cache(tmp_path / "other")
    assert cache.put(digest("new"), [1]) == [1]
    assert not (tmp_path / "other").exists()


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
