"""C++ compilation: the search for a compiler, and cached builds of shared libraries and programs.

The compiler is the first that is found of: the command in the environment variable `CXX`, g++,
clang++, and the compiler of Zig from the Python package ziglang. Built files go into the cache.
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

__all__ = ["compile_and_link", "compiler_command", "has_compiler"]

#: Advice for users without a compiler, for messages.
INSTALL_HINT = "install g++ or clang++ with your system, or pip install ziglang"


def compiler_command() -> list[str]:
    """Return the command of a C++ compiler, as a list of words.

    Raises
    ------
    MissingTool
        If no compiler is found; the message says how to install one.
    """
    if named := os.environ.get(tools.env_var("g++")):
        return _parse_command(named)
    for name in ("g++", "clang++"):
        if path := shutil.which(name):
            return [path]
    # Why not `python -m ziglang`: that would run a file ziglang.py of the current folder.
    folder = tools.package_folder("ziglang")
    if folder and (path := shutil.which("zig", path=os.fspath(folder))):
        return [path, "c++"]
    raise MissingTool(f"C++ compiler was not found: {INSTALL_HINT}")


def _parse_command(text: str) -> list[str]:
    """Return the compiler command in a text, the value of the environment variable `CXX`.

    The text is the path of a program, or a program followed by arguments.
    """
    if path := shutil.which(text):
        return [path]
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise InputError(f"CXX must be a command, not {text!r} ({error})") from None
    for word in words[:1]:
        if path := shutil.which(word):
            return [path, *words[1:]]
    raise MissingTool(f"C++ compiler was not found as {text!r} (set by CXX): {INSTALL_HINT}")


def has_compiler() -> bool:
    """Return True if a compiler is found."""
    try:
        return bool(compiler_command())
    except MissingTool:
        return False


@functools.cache
def compiler_version(command: tuple[str, ...]) -> str:
    """Return the first line of the version that a compiler prints.

    Parameters
    ----------
    command : tuple of str
        The words that run the compiler, as `compiler_command` returns them.
    """
    return tools.run_command("g++", [*command, "--version"]).stdout.split("\n")[0]


def compile_and_link(
    name: str,
    sources: Mapping[str, str],
    *,
    flags: Sequence[str],
    link: Sequence[str] = (),
    headers: Mapping[str, str] | None = None,
    what: str,
) -> Path:
    """Compile and link sources, or take the result from the cache.

    Parameters
    ----------
    name : str
        File name of the result.
    sources : dict of str to str
        Text of each source, by file name. Several sources are compiled in parallel.
    flags : sequence of str
        Arguments for compiling and linking.
    link : sequence of str
        Additional arguments for linking.
    headers : dict of str to str, optional
        Text of each file that sources include, by file name.
    what : str
        Noun for the result in error messages.

    Returns
    -------
    Path
        The built file, which exists until this process ends.

    Raises
    ------
    MissingTool
        If no compiler is found.
    WorkFailed
        If the compiler fails.
    """
    command = compiler_command()
    texts = {**sources, **(headers or {})}
    key = digest(name, texts, list(flags), list(link), compiler_version(tuple(command)))
    cache, made = Cache(), Path(_build_folder().name, key, name)
    with cache.lock(key):
        if made.exists():
            return made
        made.parent.mkdir(exist_ok=True)
        if cache.fetch_files(key, [name], made.parent):
            return made
        with work_folder("cxx") as work:
            for file, text in texts.items():
                # Texts may contain paths, whose bytes need not be UTF-8.
                (work / file).write_text(text, encoding="utf-8", errors="surrogateescape")
            compiling = [*command, *flags]
            objects = processes.map_in_threads(
                lambda file: _compile_source(compiling, file, work, what), sources
            )
            _run_compiler([*compiling, *objects, *link, "-o", name], work, makes=name, what=what)
            cache.put_files(key, {name: work / name})
            return Path(shutil.copy(work / name, made))


@functools.cache
def _build_folder() -> "tempfile.TemporaryDirectory[str]":
    """Make a folder for the built files of this process, which is removed when the process ends.

    The folder lies in the cache, where possible. Why: some machines forbid executing files in the
    folder for temporary files.
    """
    return tempfile.TemporaryDirectory(prefix="torusfabric-", dir=Cache().make_private_folder())


def _compile_source(command: Sequence[str], file: str, folder: Path, what: str) -> str:
    """Compile one source and return the name of the object file.

    `command` is the compiler with its flags, `file` the name of the source in `folder`. An error
    message names the result of the whole build by the noun `what`.
    """
    made = f"{file}.o"
    _run_compiler([*command, "-c", file, "-o", made], folder, makes=made, what=what)
    return made


def _run_compiler(command: Sequence[str], folder: Path, *, makes: str, what: str) -> None:
    """Run the compiler in a folder and check that it made the file `makes`.

    `command` is the compiler with all arguments. An error message names the result of the whole
    build by the noun `what`.
    """
    done = tools.run_command("g++", command, folder=folder)
    if done.returncode:
        line = tools.error_line(done.stderr + done.stdout, done.returncode)
        raise WorkFailed(f"C++ compiler failed on {what}: {line}")
    if not (folder / makes).is_file():
        where = tools.origin_text("g++", shlex.join(compiler_command()))
        raise WorkFailed(f"C++ compiler {where} ended without writing {makes}")
