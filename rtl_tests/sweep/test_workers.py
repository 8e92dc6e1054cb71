"""Workers of a sweep on cores and on clusters, some of which are lost."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool

import pytest
from helpers import few
from sweeps import MANY, lines_of, plan_step

from torusfabric.errors import InputError, MissingTool
from torusfabric.sweep import cores
from torusfabric.sweep.cluster import run_on_cluster
from torusfabric.sweep.cores import run_on_cores
from torusfabric.sweep.grid import grid_points, read_sweep
from torusfabric.sweep.results import Results
from torusfabric.sweep.work import compute_rows, describe_point


def test_missing_tool_ends_a_sweep(tmp_path):
    row = {"key": "0", "status": "missing", "reason": "Tool yosys was not found"}
    with Results(tmp_path / "r.jsonl") as results, pytest.raises(MissingTool, match="yosys"):
        compute_rows([plan_step()], results, lambda todo: (r for r in [row]))


def _start(path, *options):
    return subprocess.Popen([sys.executable, "-m", "torusfabric", "sweep", str(path), *options])


def _wait_for_lines(path, count, process):
    for _ in range(3000):
        if path.exists() and path.read_bytes().count(b"\n") >= count:
            return
        assert process.poll() is None
        time.sleep(0.01)
    raise AssertionError("nothing happens")


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="needs kill -9")
def test_killed_sweep_goes_on_where_it_was(write):
    path = write(MANY)
    rows, total = path.with_suffix(".jsonl"), len(grid_points(read_sweep(path)))
    process = _start(path)
    _wait_for_lines(rows, 5, process)
    process.kill()
    process.wait()
    text = rows.read_bytes()
    whole = text[: text.rfind(b"\n") + 1]
    assert 5 <= whole.count(b"\n") < total
    assert _start(path).wait() == 0
    assert rows.read_bytes().startswith(whole)
    keys = [row["key"] for row in lines_of(rows)]
    assert len(keys) == len(set(keys)) == total


@pytest.mark.skipif(sys.platform == "win32", reason="needs kill -9")
def test_lost_process_is_replaced():
    todo = [plan_step(f"{n}x{n}", algorithm="hamiltonian") for n in range(3, 8)]
    rows = run_on_cores(todo, jobs=2)
    found = [next(rows)]
    victims = [p for p in _children(os.getpid()) if b"spawn_main" in _command(p)]
    os.kill(victims[0], signal.SIGKILL)
    found += rows
    assert sorted(map(describe_point, found)) == sorted(map(describe_point, todo))
    assert {row["status"] for row in found} == {"done"}


@pytest.mark.parametrize("turn", few(2, [1, 2, 3], tuples=True))
def test_no_point_is_lost_with_a_process_that_dies_between_two(monkeypatch, turn):
    """No point is lost if the pool breaks when it is given the next point."""
    turns = []

    class Pool(ProcessPoolExecutor):
        def submit(self, *call, **options):
            turns.append(call)
            if len(turns) == turn:
                raise BrokenProcessPool
            return super().submit(*call, **options)

    monkeypatch.setattr(cores, "ProcessPoolExecutor", Pool)
    todo = [plan_step(f"{n}x{n}", algorithm="hamiltonian") for n in range(3, 6)]
    found = list(run_on_cores(todo, jobs=2))
    assert sorted(map(describe_point, found)) == sorted(map(describe_point, todo))
    assert {row["status"] for row in found} == {"done"}


def test_cycles_of_one_plan_are_for_one_process(monkeypatch):
    turns = []

    class Pool(ProcessPoolExecutor):
        def submit(self, *call, **options):
            turns.append(len(call[1]))
            return super().submit(*call, **options)

    monkeypatch.setattr(cores, "ProcessPoolExecutor", Pool)
    point = plan_step("3", algorithm="hamiltonian")
    cycles = [point | {"step": "cycles", "width": width, "flits": flits}
              for width in (8, 9) for flits in (2, 4)]  # fmt: skip
    found = list(run_on_cores([*cycles, point], jobs=2))
    assert sorted(map(describe_point, found)) == sorted(map(describe_point, [*cycles, point]))
    assert turns == [4, 1]


def _children(pid):
    if not os.path.isdir("/proc"):
        pytest.skip("needs /proc")
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(child) for child in file.read().split()]


def _command(pid):
    with open(f"/proc/{pid}/cmdline", "rb") as file:
        return file.read()


@pytest.mark.parametrize("address", ["nonsense://here", "here", "here:there", ""])
def test_no_scheduler(address, monkeypatch):
    """An invalid scheduler address is refused before a client is made, which would wait long."""
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr(distributed, "Client", None)
    with pytest.raises(InputError, match=r"^No Dask scheduler answers at "):
        list(run_on_cluster([plan_step()], address))


@pytest.mark.long
@pytest.mark.filterwarnings("default")
def test_cluster_loses_a_worker(write):
    distributed = pytest.importorskip("distributed")
    path = write(MANY)
    rows, total = path.with_suffix(".jsonl"), len(grid_points(read_sweep(path)))
    with distributed.LocalCluster(
        n_workers=3, threads_per_worker=1, processes=True, dashboard_address=None
    ) as cluster:
        process = _start(path, "--scheduler", cluster.scheduler_address)
        _wait_for_lines(rows, 5, process)
        os.kill(next(iter(cluster.workers.values())).pid, signal.SIGKILL)
        assert process.wait() == 0
    keys = [row["key"] for row in lines_of(rows)]
    assert len(keys) == len(set(keys)) == total
    assert {row["status"] for row in lines_of(rows)} == {"done", "misfit"}


def test_workers_import_nothing_from_the_current_folder(tmp_path):
    """Workers import no module from the current folder, where anyone may have written files."""
    here = tmp_path / "here"
    here.mkdir()
    (here / "grid.toml").write_text('topologies = ["3"]\ncollectives = ["broadcast"]')
    for name in ("selectors", "multiprocessing", "tempfile", "numpy"):
        (here / f"{name}.py").write_text(f"open({str(tmp_path / name)!r}, 'w')")
    command = tmp_path / "command.py"
    command.write_text(
        "import sys\n"
        "from torusfabric.cli import main\n"
        "if __name__ == '__main__':\n"
        "    sys.path.pop(0)\n"
        "    sys.exit(main(['sweep', 'grid.toml', '--quiet']))\n"
    )
    paths = os.pathsep.join(path for path in sys.path if path)
    environ = os.environ | {"PYTHONPATH": paths}
    subprocess.run([sys.executable, str(command)], cwd=here, env=environ, check=True)
    assert [row["status"] for row in lines_of(here / "grid.jsonl")] == ["done"]
    assert {path.name for path in tmp_path.iterdir()} <= {"here", "command.py", "__pycache__"}


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
def test_worker_that_is_ended_leaves_no_work_folder(tmp_path):
    """A worker that is ended by a signal removes its work folder."""
    code = (
        "import os, signal, time\n"
        "from torusfabric.sweep.cores import _begin_worker\n"
        "from torusfabric.toolchain.folders import work_folder\n"
        "_begin_worker(os.getcwd())\n"
        "with work_folder('synth') as folder:\n"
        "    (folder / 'text').write_text('')\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "    time.sleep(30)\n"
    )
    environ = os.environ | {"TMPDIR": str(tmp_path)}
    assert subprocess.run([sys.executable, "-c", code], env=environ).returncode == 1
    assert not list(tmp_path.iterdir())
