"""The cache: what is put is got back, whole or not at all, and nothing ever fails because of it."""

import base64
import multiprocessing
import os
import sys
import zlib
from pathlib import Path

import pytest

from torusfabric.toolchain.cache import Cache, RenewingCache, default_folder, digest


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
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_folder() == tmp_path / ".cache" / "torusfabric"


def test_different_values_have_different_digests():
    values = [("a", "b"), ("ab",), ("a", ["b"]), ("b", "a"), ("a", "b", 1), ("a", "b", "1"), ()]
    assert len({digest(*value) for value in values}) == len(values)
    assert digest({"x": 1, "y": 2}) == digest({"y": 2, "x": 1})


def test_value_comes_back(tmp_path):
    cache = Cache(tmp_path)
    key = digest("k")
    assert cache.get(key) is None
    value = cache.put(key, {"luts": (1, 2), 3: None})
    assert value == {"luts": [1, 2], "3": None}
    assert cache.get(key) == value
    assert cache.get(digest("other")) is None
    cache.put(key, 5)
    assert Cache(tmp_path).get(key) == 5


def test_file_comes_back(tmp_path):
    cache = Cache(tmp_path / "cache")
    source = tmp_path / "a.bin"
    source.write_bytes(bytes(range(256)))
    assert cache.get_file("abcd", "b.bin") is None
    kept = cache.put_file("abcd", "b.bin", source)
    source.unlink()
    assert kept is not None
    assert cache.get_file("abcd", "b.bin") == kept
    assert kept.read_bytes() == bytes(range(256))
    assert cache.put_file("abcd", "c.bin", source) is None


def test_files_keep_their_modes_and_are_there_together_or_not(tmp_path):
    cache = Cache(tmp_path / "cache")
    program, text = tmp_path / "program", tmp_path / "text"
    program.write_text("#!")
    program.chmod(0o755)
    text.write_text("words")
    kept = cache.put_files("abcd", {"p": program, "t": text})
    assert kept is not None
    assert cache.get_files("abcd", ["p", "t"]) == kept
    assert kept[0].stat().st_mode == program.stat().st_mode
    assert cache.get_files("abcd", ["p", "t", "u"]) is None


def test_damaged_entry_is_a_miss(tmp_path):
    cache = Cache(tmp_path)
    cache.put("abcd", {"luts": 12345})
    path = next(tmp_path.rglob("abcd.json"))
    whole = path.read_bytes()
    for damaged in (whole[:-3], whole.replace(b"12345", b"12346"), b"\xff\xfe\x00", b"[1]", b""):
        path.write_bytes(damaged)
        assert cache.get("abcd") is None
    path.write_bytes(whole)
    path.rename(path.with_name("abce.json"))
    assert cache.get("abce") is None


def test_value_of_another_version_is_a_miss(tmp_path):
    """What a class that is gone was pickled as, and what is no pickle."""
    cache = Cache(tmp_path)
    cache.put_object("abcd", [1])
    assert cache.get_object("abcd") == [1]
    for gone in (b"cno_such_module\nNone\n.", b"\x80\x04", b""):
        cache.put("abcd", base64.b64encode(zlib.compress(gone)).decode())
        assert cache.get_object("abcd") is None


def test_damaged_files_are_a_miss(tmp_path):
    cache, source = Cache(tmp_path / "cache"), tmp_path / "source"
    source.write_text("words")
    for damage in ("other", "", None):
        kept = cache.put_files("abcd", {"a": source, "b": source})
        assert kept is not None
        if damage is None:
            kept[1].unlink()
        else:
            kept[1].write_text(damage)
        assert cache.get_files("abcd", ["a", "b"]) is None
        assert not cache.fetch_files("abcd", ["a", "b"], tmp_path)
    cache.put_files("abcd", {"a": source})
    entry = cache.folder / "ab" / "abcd"
    entry.rename(entry.with_name("abce"))
    assert cache.get_file("abce", "a") is None


def test_files_are_copied_out(tmp_path):
    cache, source, out = Cache(tmp_path / "cache"), tmp_path / "source", tmp_path / "out"
    source.write_text("words")
    source.chmod(0o755)
    out.mkdir()
    assert not cache.fetch_files("abcd", ["a"], out)
    cache.put_file("abcd", "a", source)
    assert cache.fetch_files("abcd", ["a"], out)
    assert (out / "a").read_text() == "words"
    assert (out / "a").stat().st_mode == source.stat().st_mode
    assert not RenewingCache(cache.folder).fetch_files("abcd", ["a"], out)


def test_entry_is_renewed_as_a_whole(tmp_path):
    """Files of two makings are not mixed; what is the same stays where it is."""
    cache, source = RenewingCache(tmp_path / "cache"), tmp_path / "source"
    for text in ("one", "two"):
        source.write_text(text)
        cache.put_files("abcd", {"a": source, text: source})
    kept = Cache(cache.folder)
    assert kept.get_files("abcd", ["a", "one"]) is None
    assert [path.read_text() for path in kept.get_files("abcd", ["a", "two"]) or ()] == ["two"] * 2
    before = (cache.folder / "ab" / "abcd").stat().st_ino
    kept.put_files("abcd", {"a": source, "two": source})
    assert (cache.folder / "ab" / "abcd").stat().st_ino == before
    assert {path.name for path in (cache.folder / "ab").iterdir()} == {"abcd"}


def test_folder_that_cannot_be_made_does_no_harm(tmp_path):
    (tmp_path / "file").write_text("in the way")
    cache = Cache(tmp_path / "file" / "cache")
    assert cache.put("abcd", [1]) == [1]
    assert cache.get("abcd") is None
    assert cache.put_file("abcd", "x", tmp_path / "file") is None
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


def test_processes_do_not_disturb_each_other(tmp_path):
    context = multiprocessing.get_context("spawn")
    keys = ["aaaa", "aabb", "cccc"]
    workers = [context.Process(target=_hammer, args=(tmp_path, n, keys)) for n in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == [
        f"{key}.json" for key in keys
    ]


def _count_up(folder, times):
    for _ in range(times):
        with Cache(folder).lock("counter"):
            path = folder / "counter"
            path.write_text(str(int(path.read_text()) + 1))


def test_lock_lets_one_in_at_a_time(tmp_path):
    (tmp_path / "counter").write_text("0")
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_count_up, args=(tmp_path, 200)) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert (tmp_path / "counter").read_text() == "400"


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="needs owners of files")
@pytest.mark.parametrize("part", [".", "ab", "ab/{key}", "ab/{key}/a", "ab/{key}/contents.json"])
def test_what_others_may_write_is_not_used(tmp_path, part):
    """A library is run, and its digest lies beside it: whoever can write one can write both."""
    key, cache = "ab" + "0" * 62, Cache(tmp_path / "cache")
    (tmp_path / "a").write_text("content")
    assert cache.put_file(key, "a", tmp_path / "a") == cache.get_file(key, "a")
    open_to_all = tmp_path / "cache" / part.format(key=key)
    open_to_all.chmod(0o777)
    assert cache.get_file(key, "a") is None
    # Made anew, it is ours again, and so are the folders.
    assert cache.put_file(key, "a", tmp_path / "a") == cache.get_file(key, "a") is not None
    cache.put(key, 1)
    assert cache.get(key) == 1
    (tmp_path / "cache" / "ab" / f"{key}.json").chmod(0o666)
    assert cache.get(key) is None


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="needs to be root")
def test_what_others_own_is_not_used(tmp_path):
    """Nor is it where they have planted a cache before there was one."""
    key, cache = "ab" + "0" * 62, Cache(tmp_path / "cache")
    (tmp_path / "a").write_text("content")
    cache.put_file(key, "a", tmp_path / "a")
    os.chown(tmp_path / "cache", 12345, -1)
    assert cache.get_file(key, "a") is None
    assert cache.put_file(key, "a", tmp_path / "a") is None
