"""C++ compilers: finding one, and building shared libraries and programs with it.

A compiler is looked for in this order: the one that the variable `CXX` names, g++, clang++, and
Zig's as the Python package ziglang installs it. What was built is kept in the cache.
"""

import functools
import os
import shlex
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..errors import InputError, MissingTool, WorkFailed
from . import processes, tools
from .cache import Cache, digest
from .folders import work_folder

__all__ = ["build", "compiler", "have_compiler"]

#: What to do without a compiler.
INSTALL = "install g++ or clang++ with your system, or pip install ziglang"


def compiler() -> list[str]:
    """The command of a C++ compiler, a list of words.

    Raises
    ------
    MissingTool
        If there is none; says how to get one.
    """
    if named := os.environ.get(tools.env_var("g++")):
        return _named(named)
    for name in ("g++", "clang++"):
        if path := shutil.which(name):
            return [path]
    # Not by python -m, which runs any file of that name in the current folder.
    folder = tools.package_folder("ziglang")
    if folder and (path := shutil.which("zig", path=os.fspath(folder))):
        return [path, "c++"]
    raise MissingTool(f"C++ compiler was not found: {INSTALL}")


def _named(text: str) -> list[str]:
    """The command that a text says: a program, perhaps with arguments before those of ours."""
    if path := shutil.which(text):
        return [path]
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise InputError(f"CXX must be a command, not {text!r} ({error})") from None
    for word in words[:1]:
        if path := shutil.which(word):
            return [path, *words[1:]]
    raise MissingTool(f"C++ compiler was not found as {text!r} (set by CXX): {INSTALL}")


def have_compiler() -> bool:
    """Whether there is a compiler."""
    try:
        return bool(compiler())
    except MissingTool:
        return False


@functools.cache
def compiler_version(command: tuple[str, ...]) -> str:
    """The version that a compiler prints."""
    return tools.call("g++", [*command, "--version"]).stdout.split("\n")[0]


def build(
    name: str,
    sources: Mapping[str, str],
    *,
    flags: Sequence[str],
    link: Sequence[str] = (),
    headers: Mapping[str, str] | None = None,
    what: str,
) -> Path:
    """Compile sources and link them, unless that has been done before.

    Parameters
    ----------
    sources : dict of str to str
        Texts by file name; several are compiled side by side.
    flags : sequence of str
        For compiling and linking.
    link : sequence of str
        For linking only.
    headers : dict of str to str, optional
        Texts that the sources include.
    what : str
        What it is, for the message of an error.

    Returns
    -------
    Path
        A file that lasts as long as this process.

    Raises
    ------
    MissingTool
        If there is no compiler.
    WorkFailed
        If it fails.
    """
    command = compiler()
    texts = {**sources, **(headers or {})}
    key = digest(name, texts, list(flags), list(link), compiler_version(tuple(command)))
    cache, made = Cache(), Path(_libraries().name, key, name)
    with cache.lock(key):
        if made.exists():
            return made
        made.parent.mkdir(exist_ok=True)
        if cache.fetch_files(key, [name], made.parent):
            return made
        with work_folder("cxx") as work:
            for file, text in texts.items():
                # A path in it may hold bytes that are no UTF-8.
                (work / file).write_text(text, encoding="utf-8", errors="surrogateescape")
            compiling = [*command, *flags]
            objects = processes.parallel(
                lambda file: _compile(compiling, file, work, what), sources
            )
            _run([*compiling, *objects, *link, "-o", name], work, makes=name, what=what)
            cache.put_files(key, {name: work / name})
            return Path(shutil.copy(work / name, made))


@functools.cache
def _libraries() -> "tempfile.TemporaryDirectory[str]":
    """A folder for the libraries of this process, which goes when the process ends.

    It lies in the cache where possible, because some machines run nothing in a folder for temporary
    files.
    """
    return tempfile.TemporaryDirectory(prefix="torusfabric-", dir=Cache().private_folder())


def _compile(command: Sequence[str], file: str, folder: Path, what: str) -> str:
    """Compile one source; returns the name of the object file."""
    made = f"{file}.o"
    _run([*command, "-c", file, "-o", made], folder, makes=made, what=what)
    return made


def _run(command: Sequence[str], folder: Path, *, makes: str, what: str) -> None:
    """Run a compiler, and see that it makes a file."""
    done = tools.call("g++", command, folder=folder)
    if done.returncode:
        line = tools.error_line(done.stderr + done.stdout, done.returncode)
        raise WorkFailed(f"C++ compiler failed on {what}: {line}")
    if not (folder / makes).is_file():
        where = tools.origin("g++", shlex.join(compiler()))
        raise WorkFailed(f"C++ compiler {where} must write {makes}, not end without it")
