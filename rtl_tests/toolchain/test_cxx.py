"""Building with a C++ compiler, with a script in its place."""

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import torusfabric
from torusfabric.errors import InputError, WorkFailed
from torusfabric.toolchain import cxx

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the compiler is a script")

#: A compiler that joins its sources into one file, and counts its calls.
COMPILER = """\
import os, sys, time
words = sys.argv[1:]
if words == ["--version"]:
    sys.exit(print("script 1"))
with open({calls!r}, "a") as calls:
    calls.write("x")
time.sleep(0.05)
made = words[words.index("-o") + 1]
sources = [word for word in words[: words.index("-o")] if not word.startswith("-")]
texts = [open(source, errors="surrogateescape").read() for source in sources]
if any("mistake" in text for text in texts):
    sys.exit("a.cc:1: error: a mistake")
with open(made, "w", errors="surrogateescape") as file:
    file.write("+".join(texts))
os.chmod(made, 0o755)
"""


@pytest.fixture
def calls(monkeypatch, tmp_path):
    """The file that grows by a character with each call of the compiler."""
    path, calls = tmp_path / "compiler", tmp_path / "calls"
    path.write_text(f"#!{sys.executable}\n" + COMPILER.format(calls=str(calls)))
    path.chmod(0o755)
    monkeypatch.setenv("CXX", str(path))
    monkeypatch.setenv("TORUSFABRIC_CACHE", str(tmp_path / "cache"))
    cxx.compiler_version.cache_clear()
    return calls


def build(**sources):
    texts = {f"{name}.cc": text for name, text in sources.items()}
    return cxx.compile_and_link("program", texts, flags=["-O1"], link=["-lm"], what="the texts")


def test_program_is_built_once(calls):
    """Each source is compiled once and linked. The executable program is kept for later builds."""
    first = build(a="one", b="two")
    assert first.read_text() == "one+two"
    assert first.stat().st_mode & stat.S_IXUSR
    assert build(a="one", b="two") == first
    assert calls.read_text() == "x" * 3
    assert build(a="one", b="three") != first


def test_two_at_once_build_once(calls):
    """Simultaneous builds of the same sources compile once and share the program."""
    found = []
    threads = [threading.Thread(target=lambda: found.append(build(a="one"))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 1
    assert calls.read_text() == "x" * 2


def test_program_outlives_a_missing_cache(calls, monkeypatch, tmp_path):
    """The program is available even if the cache cannot keep it."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TORUSFABRIC_CACHE", str(tmp_path / "file" / "cache"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert build(a="one").read_text() == "one"


def test_nothing_is_left_without_a_cache(calls, tmp_path):
    """A program that is not kept is removed when the process ends."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    code = (
        "from torusfabric.toolchain import cxx\n"
        "print(cxx.compile_and_link('p', {'a.cc': 'one'}, flags=[], what='it').read_text())"
    )
    environ = os.environ | {"TMPDIR": str(temporary), "TORUSFABRIC_CACHE_LIMIT": "0"}
    command = [sys.executable, "-c", code]
    assert subprocess.run(command, env=environ, capture_output=True).stdout == b"one\n"
    assert not list(temporary.iterdir())


def test_failure_quotes_the_compiler(calls):
    """The error of the compiler is in the message, and no failed build is kept."""
    with pytest.raises(
        WorkFailed, match=r"^C\+\+ compiler failed on the texts: a\.cc:1: error: a mistake$"
    ):
        build(a="mistake")
    with pytest.raises(WorkFailed):
        build(a="mistake")


def test_compiler_of_a_package(monkeypatch, tmp_path):
    """Zig's compiler runs from its package, and modules of the current folder are not run."""
    package, here = tmp_path / "site" / "ziglang", tmp_path / "here"
    package.mkdir(parents=True)
    here.mkdir()
    (package / "__init__.py").touch()
    (package / "zig").write_text('#!/bin/sh\necho "the package: $*"\n')
    (package / "zig").chmod(0o755)
    (here / "ziglang.py").write_text("print('the current folder')\n")
    code = (
        "from torusfabric.toolchain import cxx\n"
        "print(cxx.compiler_version(tuple(cxx.compiler_command())))"
    )
    (tmp_path / "program").write_text(code)
    path = os.pathsep.join([str(package.parent), str(Path(torusfabric.__file__).parent.parent)])
    done = subprocess.run(
        [sys.executable, tmp_path / "program"],
        cwd=here,
        env=os.environ | {"PATH": "", "CXX": "", "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert (done.stdout, done.stderr) == ("the package: c++ --version\n", "")


def test_any_bytes_in_a_source(calls):
    """A source may contain bytes that are no UTF-8."""
    assert build(a=os.fsdecode(b"\xff")).read_bytes() == b"\xff"


def test_compiler_with_words_before_its_arguments(calls, monkeypatch):
    """`CXX` may be a command of several words, or a path with a space."""
    path = os.environ["CXX"]
    wrapper = calls.parent / "wrap per"
    wrapper.write_text('#!/bin/sh\nexec "$@"\n')
    wrapper.chmod(0o755)
    monkeypatch.setenv("CXX", f"'{wrapper}' {path}")
    assert cxx.compiler_command() == [str(wrapper), path]
    assert build(a="one").read_text() == "one"
    monkeypatch.setenv("CXX", str(wrapper))  # a single path with a space in it
    assert cxx.compiler_command() == [str(wrapper)]
    monkeypatch.setenv("CXX", "g++ '")
    with pytest.raises(InputError, match=r"^CXX must be a command, not \"g\+\+ '\" \(No closing"):
        cxx.compiler_command()
    monkeypatch.setenv("CXX", "no-such-compiler")
    assert not cxx.has_compiler()


def test_compiler_that_makes_nothing(calls, monkeypatch):
    """A compiler that succeeds without a result is an error of one line, and no result is kept."""
    monkeypatch.setenv("CXX", "true")
    for _ in range(2):
        with pytest.raises(
            WorkFailed, match=r"^C\+\+ compiler \(.*/true, set by CXX\) ended without writing a\."
        ):
            build(a="one")
