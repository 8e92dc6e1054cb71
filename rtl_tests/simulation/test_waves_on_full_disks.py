"""Waves that cannot be written completely are one clear error, and leave no cut file."""

import contextlib
import os
import stat
import threading

import pytest
from helpers import fabric_of, random_messages
from test_engines_waves import ENGINES, needs_gtkwave, run

from torusfabric.errors import InputError, WorkFailed
from torusfabric.simulation.engines import AmaranthEngine
from torusfabric.simulation.engines.waves import is_complete_fst

resource = pytest.importorskip("resource")


@contextlib.contextmanager
def files_of_at_most(size):
    """Limit the size of files that the process can write."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize(("engine", "options"), ENGINES)
def test_file_that_grows_too_large(engine, options, tmp_path):
    """A full disk is one error, whether it is full in the first lines or later."""
    fabric, wave = fabric_of("3x3", "allgather"), tmp_path / "fabric.vcd"
    made, messages = engine(fabric, wave=wave, **options), random_messages(fabric, 1)
    made.run(messages)
    whole = wave.stat().st_size
    for path in tmp_path.iterdir():
        path.unlink()
    for size in (100, whole - 1):
        with (
            files_of_at_most(size),
            pytest.raises(InputError, match=r"^File \S+ of waves cannot be written \(File too"),
        ):
            made.run(messages)
        assert not list(tmp_path.iterdir())
    made.run(messages)
    assert wave.stat().st_size >= whole - 10  # the date in it may vary


def test_view_that_cannot_be_written(tmp_path):
    (tmp_path / "fabric.gtkw").mkdir()
    with pytest.raises(InputError, match=r"^File \S+/fabric.gtkw cannot be written \(Is a dir"):
        run(AmaranthEngine, {}, fabric_of("2x2", "allgather"), tmp_path / "fabric.vcd")
    assert [path.name for path in tmp_path.iterdir()] == ["fabric.gtkw"]


def test_waves_to_a_fifo(tmp_path):
    """Waves can be written to a FIFO, which stays a FIFO."""
    wave, read = tmp_path / "fabric.vcd", []
    os.mkfifo(wave)
    reader = threading.Thread(target=lambda: read.append(wave.read_text()))
    reader.start()
    run(AmaranthEngine, {}, fabric_of("2x2", "allgather"), wave)
    reader.join()
    assert "$enddefinitions" in read[0]
    assert stat.S_ISFIFO(wave.stat().st_mode)


@needs_gtkwave
def test_cut_file_is_not_whole(tmp_path, monkeypatch):
    wave = tmp_path / "fabric.fst"
    run(AmaranthEngine, {}, fabric_of("2x2", "allgather"), wave)
    whole = wave.read_bytes()
    assert is_complete_fst(wave)
    for size in (0, 5, 100, 400, len(whole) // 2, len(whole) - 1):
        wave.write_bytes(whole[:size])
        assert not is_complete_fst(wave)
    wave.unlink()
    cuts = tmp_path / "vcd2fst"
    cuts.write_text("#!/bin/sh\nprintf cut > $2\n")
    cuts.chmod(0o755)
    monkeypatch.setenv("VCD2FST", str(cuts))
    with pytest.raises(WorkFailed, match=r"^vcd2fst failed on the waves: it could not write all"):
        run(AmaranthEngine, {}, fabric_of("2x2", "allgather"), wave)
    assert {path.name for path in tmp_path.iterdir()} == {"fabric.gtkw", "vcd2fst"}
