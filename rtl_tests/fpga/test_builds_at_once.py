"""Simultaneous builds in one folder or of one fabric: each gets its own bitstream."""

import hashlib
import json
import sys
import threading
from dataclasses import replace

import pytest
from helpers import fabric_of, few

from torusfabric.errors import InputError, WorkFailed
from torusfabric.fpga.board import build, find_board, flash
from torusfabric.fpga.board.plan import SCRIPT
from torusfabric.toolchain import tools
from torusfabric.toolchain.cache import Cache

#: Seconds to wait for another thread on a busy machine.
PATIENCE = 30

PLACED = json.dumps({"utilization": {}, "fmax": {"clk": {"achieved": 150.0}}})


def image_of(plan):
    """The bitstream that the fake tools make of a plan."""
    return hashlib.sha256(plan.files["fabric.il"].encode()).hexdigest().encode()


@pytest.fixture
def waits():
    """An event that is set as soon as a build waits for another build."""
    return threading.Event()


@pytest.fixture
def board(monkeypatch, waits, kept_plans):
    """A board with fake tools. In a thread, the tools work until another build waits for them."""

    def run(plan, build, *_):
        work = build.work
        (work / "fabric.il").write_bytes(image_of(plan))
        if threading.current_thread() is not threading.main_thread():
            waits.wait(PATIENCE)
        bitstream = (work / "fabric.il").read_bytes()
        (work / "fabric.report.json").write_text(PLACED)
        for name in ("fabric.bin", "fabric.rpt", "fabric.tim", "build.log", SCRIPT):
            (work / name).write_bytes(bitstream)

    monkeypatch.setattr(sys.modules["torusfabric.fpga.board.run"], "run_plan", run)
    monkeypatch.setattr(tools, "version", lambda tool: "1")
    return find_board("icebreaker")


def fabric(width):
    return fabric_of("2", "allgather", width=width, flits=2)


def test_each_gets_its_own_bitstream(board, waits, tmp_path):
    """Two builds in one folder get their own bitstreams; folder and caches stay consistent."""
    out, caches = tmp_path / "out", {width: Cache(tmp_path / f"cache-{width}") for width in (3, 5)}
    built, begin = {}, threading.Barrier(2)

    def note(done, total, text):
        if text.startswith("waiting for another build in "):
            waits.set()

    def make(width):
        begin.wait()
        built[width] = build(fabric(width), board, out, cache=caches[width],
                             progress=note)  # fmt: skip

    threads = [threading.Thread(target=make, args=(width,)) for width in (3, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert waits.is_set()
    assert built[3].report["sha256"] != built[5].report["sha256"]
    report = json.loads((out / "report.json").read_text())
    assert hashlib.sha256((out / "fabric.bin").read_bytes()).hexdigest() == report["sha256"]
    found = sorted(path.name for path in out.glob("[!.]*"))
    assert found == ["build", "fabric.bin", "report.json"]
    for width, cache in caches.items():
        again = build(fabric(width), board, tmp_path / "again", cache=cache)
        assert again.cached
        assert again.report["sha256"] == built[width].report["sha256"]


def test_damaged_entry_is_built_again(board, tmp_path):
    """An entry that was changed in the cache is built again."""
    cache = Cache(tmp_path / "cache")
    built = build(fabric(3), board, tmp_path / "out", cache=cache)
    (cache.folder / "entries" / "cache.db").write_bytes(b"the bitstream of another")
    again = build(fabric(3), board, tmp_path / "out", cache=cache)
    assert not again.cached
    assert again.report == built.report
    assert build(fabric(3), board, tmp_path / "out", cache=cache).cached


def test_failure_names_a_log_that_exists(board, tmp_path, monkeypatch):
    """The log that a failure message names exists after the failure."""

    def fail(plan, build, *_):
        work = build.work
        (work / "fabric.tim").write_text("ERROR: no")
        raise WorkFailed(f"Build failed: no (log: {work / 'fabric.tim'})")

    monkeypatch.setattr(sys.modules["torusfabric.fpga.board.run"], "run_plan", fail)
    log = tmp_path / "out" / "build" / "fabric.tim"
    with pytest.raises(WorkFailed) as caught:
        build(fabric(3), board, tmp_path / "out", cache=Cache(tmp_path / "cache"))
    assert str(caught.value) == f"Build failed: no (log: {log})"
    assert log.read_text() == "ERROR: no"
    assert [path.name for path in (tmp_path / "out").glob("[!.]*")] == ["build"]


def test_only_what_was_built_is_loaded(board, tmp_path, monkeypatch):
    """A bitstream that a later build has replaced is not loaded."""
    programmer = tmp_path / "iceprog-of-ours"
    programmer.write_text("#!/bin/sh\ntouch loaded\n")
    programmer.chmod(0o755)
    monkeypatch.setenv("ICEPROG", str(programmer))
    cache = Cache(tmp_path / "cache")
    first = build(fabric(3), board, tmp_path / "out", cache=cache)
    flash(first, board)
    assert (tmp_path / "out" / "loaded").exists()
    (tmp_path / "out" / "loaded").unlink()
    build(fabric(5), board, tmp_path / "out", cache=cache)
    with pytest.raises(WorkFailed, match=r"^Bitstream \S+ was replaced by another build in the sa"):
        flash(first, board)
    assert not (tmp_path / "out" / "loaded").exists()


@pytest.mark.parametrize("name", few(1, ["fabric.bin", "report.json", "build/fabric.rpt"]))
def test_files_of_somebody_else_stay(board, name, tmp_path):
    """Files of the user in the output folder are kept, unless `--force` is given."""
    cache = Cache(tmp_path / "cache")
    out = tmp_path / "out"
    (out / "build").mkdir(parents=True)
    for _ in range(2):
        (out / name).write_text("years of work")
        with pytest.raises(InputError, match=rf"^File \S+/{name} exists and is not .*--force"):
            build(fabric(3), board, out, cache=cache)
        assert (out / name).read_text() == "years of work"
        build(fabric(3), board, out, cache=cache, force=True)
        assert (out / name).read_bytes() != b"years of work"


def test_what_was_added_to_the_files_of_tools_stays(board, tmp_path):
    cache, notes = Cache(tmp_path / "cache"), tmp_path / "build" / "notes.txt"
    build(fabric(3), board, tmp_path, cache=cache)
    notes.write_text("years of work")
    build(fabric(5), board, tmp_path, cache=cache)
    assert notes.read_text() == "years of work"


@pytest.mark.parametrize("name", ["../thesis.tex", "/thesis.tex", "a/b", "..", "report.json"])
def test_products_lie_beside_the_report(board, name):
    """Products must lie beside the report, so that a build removes no file elsewhere."""
    with pytest.raises(InputError, match=r"^Products of Board must be names of files beside"):
        replace(board, products=("fabric.bin", name))
