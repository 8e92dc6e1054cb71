"""C++ compilers: finding one, and building shared libraries and programs with it.

Wanted is, in this order, what the variable `CXX` names, g++, clang++, and Zig's as the Python
package ziglang installs it. What was built is kept in the cache.
"""

import functools
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from ..errors import MissingTool, WorkFailed
from . import tools
from .cache import Cache, digest

__all__ = ["build", "compiler", "have_compiler"]

#: What to do without a compiler.
INSTALL = "install g++ or clang++ with your system, or pip install ziglang"


def compiler():
    """The command of a C++ compiler, a list of words.

    Raises
    ------
    MissingTool
        If there is none; says how to get one.
    """
    named = os.environ.get(tools.env_var("g++"))
    if named:
        if path := shutil.which(named):
            return [path]
        raise MissingTool(f"C++ compiler was not found as {named!r} (set by CXX): {INSTALL}")
    for name in ("g++", "clang++"):
        if path := shutil.which(name):
            return [path]
    if importlib.util.find_spec("ziglang"):
        return [sys.executable, "-m", "ziglang", "c++"]
    raise MissingTool(f"C++ compiler was not found: {INSTALL}")


def have_compiler():
    """Whether there is a compiler."""
    try:
        return bool(compiler())
    except MissingTool:
        return False


@functools.cache
def compiler_version(command):
    """What a compiler says it is."""
    done = subprocess.run([*command, "--version"], capture_output=True, text=True)
    return done.stdout.split("\n")[0]


def build(name, sources, *, flags, link=(), headers=None, what):
    """Compile sources and link them, unless that has been done before.

    Parameters
    ----------
    name : str
        The file to make.
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
    path

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
    cache = Cache()
    if kept := cache.get_file(key, name):
        return kept
    folder = Path(tempfile.mkdtemp(prefix="torusfabric-"))
    try:
        for file, text in texts.items():
            (folder / file).write_text(text)

        def compile_one(file):
            _run([*command, *flags, "-c", file, "-o", file + ".o"], folder, what)
            return file + ".o"

        objects = list(tools.parallel(compile_one, sources))
        _run([*command, *flags, *objects, *link, "-o", name], folder, what)
        if kept := cache.put_file(key, name, folder / name):
            shutil.copymode(folder / name, kept)
            return kept
        # Without a cache the file must outlive this call.
        last = Path(tempfile.mkdtemp(prefix="torusfabric-")) / name
        shutil.copy(folder / name, last)
        return last
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run(command, folder, what):
    """Run a compiler."""
    done = subprocess.run(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
    )
    if done.returncode:
        said = tools.telling_line(done.stderr + done.stdout, done.returncode)
        raise WorkFailed(f"C++ compiler failed on {what}: {said}")
