"""Sweeps: the grid of points, and the command."""

import json
import re
import textwrap

import pytest
from sweeps import lines_of, plan_step

import torusfabric as tf
from torusfabric.cli import main
from torusfabric.errors import InputError
from torusfabric.sweep.grid import (
    AXES,
    SimulationChoice,
    file_contents,
    grid_points,
    point_key,
    read_sweep,
)
from torusfabric.sweep.work import compute_row
from torusfabric.topology import Faulty


def test_each_step_is_done_once_for_what_matters_to_it(write):
    grid = read_sweep(
        write(
            """
            steps = ["plan", "simulate", "synth"]
            topologies = ["4x4", "4x6"]
            collectives = ["allgather"]
            algorithms = ["best", "hamiltonian"]
            widths = [8, 16, 32]
            flits = [2, 4]
            targets = ["ecp5-25k", "ice40-hx8k"]
            mappings = ["compact", "fast"]
            pnr = true
            seeds = 3
            """
        )
    )
    found = grid_points(grid)
    steps = [point["step"] for point in found]
    plans, simulations = 2 * 2, 2 * 2 * 3 * 2
    assert [steps.count(s) for s in ("plan", "simulate", "synth")] == [
        plans,
        simulations,
        simulations * 2 * 2,
    ]
    assert len({point_key(point) for point in found}) == len(found)
    assert "width" not in found[0]
    assert found[-1] == {
        "step": "synth",
        "topology": "4x6",
        "collective": "allgather",
        "algorithm": "hamiltonian",
        "width": 32,
        "flits": 4,
        "target": "ice40-hx8k",
        "mapping": "fast",
        "pnr": True,
        "seeds": 3,
    }


def test_cycles_take_the_place_of_simulations(write):
    """Cycles replace simulations. A sample simulates the first point of each collective and
    algorithm, and some random ones.
    """
    grid = read_sweep(
        write(
            """
            steps = ["simulate", "plan"]
            topologies = ["3x3", "3x4", "4x4"]
            collectives = ["allgather", "broadcast"]
            widths = [1, 2, 4, 8, 16, 32]
            flits = [1, 2, 4, 8]
            """
        )
    )
    every, sample, none = (grid_points(grid, simulated) for simulated in SimulationChoice)
    steps = [[point["step"] for point in found] for found in (every, sample, none)]
    assert [found.count("simulate") for found in steps][::2] == [144, 0]
    assert [found.count("plan") for found in steps] == [6, 6, 6]
    assert 2 + 142 // 16 < steps[1].count("simulate") < 2 + 142 // 4
    assert {*map(len, steps)} == {150}
    first: dict[tuple[bool, object], object] = {}
    for point in sample:
        first.setdefault((point["step"] == "plan", point["collective"]), point["step"])
    assert set(first.values()) == {"simulate", "plan"}
    assert [point | {"step": "simulate"} for point in none[:144]] == every[:144]


def test_several_collectives_and_lengths_of_any_run(write):
    """Several collectives in one entry are one engine, with the named or the best algorithms."""
    text = """
        steps = ["plan", "simulate"]
        topologies = ["3"]
        collectives = ["allgather", "allgather,alltoall:necklace", "alltoall:matching"]
        algorithms = ["best", "bufferless"]
        widths = [4]
        max_flits = [2, 3]
        """
    found = grid_points(read_sweep(write(text)))
    names = [(point["collective"], point["algorithm"]) for point in found]
    once = [
        ("allgather", "best"),
        ("allgather", "bufferless"),
        ("allgather,alltoall:necklace", "best"),
        ("alltoall:matching", "best"),
    ]
    assert names[:4] == once
    assert sorted(names[4:]) == sorted(once * 2)
    assert [point["max_flits"] for point in found if "max_flits" in point] == [2, 3] * 4
    plan, simulation, _ = [point for point in found if "," in point["collective"]]
    assert [mode["algorithm"] for mode in compute_row(plan)["result"]["modes"]] == [
        "hamiltonian",
        "necklace",
    ]
    jobs = compute_row(simulation)["result"]["jobs"]
    assert {(job["mode"], job["length"], job["words_wrong"]) for job in jobs} == {
        (mode, length, 0) for mode in (0, 1) for length in (1, 2)
    }
    both = [
        point for point in grid_points(read_sweep(write(text + "flits = [4]"))) if "width" in point
    ]
    lengths = [(point.get("flits"), point.get("max_flits")) for point in both]
    assert sorted(set(lengths), key=str) == [(4, None), (None, 2), (None, 3)]
    assert len(both) == 12
    for wrong in ("allgather,nonsense", "allgather:nonsense", "allgather,"):
        with pytest.raises(InputError, match="must be one of"):
            read_sweep(write(f'topologies = ["3x3"]\ncollectives = ["{wrong}"]'))


def test_several_files(write, tmp_path):
    """Several plan files in one entry are one engine, with the contents of all in its key."""
    files = [str(tmp_path / name) for name in ("a.json", "b.json")]
    for file, kind in zip(files, ("allgather", "broadcast"), strict=True):
        tf.plan("2x3", kind).save(file)
    grid = f'steps = ["plan", "simulate"]\nplans = ["{",".join(files)}"]\nmax_flits = [2]'
    plan, simulate = grid_points(read_sweep(write(grid)))
    assert [mode["collective"] for mode in compute_row(plan)["result"]["modes"]] == [
        "allgather", "broadcast"
    ]  # fmt: skip
    assert simulate["max_flits"] == 2
    tf.plan("2x3", "broadcast", root=1).save(files[1])
    assert point_key(grid_points(read_sweep(write(grid)))[0]) != point_key(plan)
    with pytest.raises(InputError, match=r"^Plan must be a schedule file, not none\.json"):
        read_sweep(write('plans = ["none.json"]'))


def test_files_of_messages_and_lengths(write, tmp_path):
    """Files of messages and lengths apply where they have a meaning, and a row to their content."""
    files = {name: tmp_path / name for name in ("a.csv", "b.csv", "counts.csv")}
    files["a.csv"].write_text("source,destinations,words\n(0),(1),3\n1,2,4\n")
    files["b.csv"].write_text("source,destinations\n0,1\n1,2\n")
    files["counts.csv"].write_text("1,2,3,0\n")
    text = (
        'steps = ["cycles"]\ntopologies = ["4"]\nwidths = [8]\nflits = [2, 3]\n'
        'collectives = ["pattern", "All-gather@{0-3}", "allreduce@{0,1}{2,3}", '
        '"pattern,allreduce"]\n'
        f'traffic = ["{files["a.csv"]}", "{files["b.csv"]}"]\ncounts = ["{files["counts.csv"]}"]\n'
    )
    points = grid_points(read_sweep(write(text)))
    found = {
        (p["collective"], p.get("traffic", "")[-5:], "counts" in p, p.get("flits")) for p in points
    }
    assert found == {
        ("pattern", "a.csv", False, None), ("pattern", "b.csv", False, 2),
        ("pattern", "b.csv", False, 3), ("All-gather@{0-3}", "", True, None),
        ("allreduce@{0,1}{2,3}", "", False, 2), ("allreduce@{0,1}{2,3}", "", False, 3),
        *(("pattern,allreduce", name, False, flits) for name in ("a.csv", "b.csv")
          for flits in (2, 3)),
    }  # fmt: skip
    first, *others = [point for point in points if point.get("collective") == "pattern"]
    contents = file_contents(first)
    row = compute_row(first, contents)
    assert (row["status"], row["result"]["flits"]) == ("done", 4)
    files["a.csv"].write_text("source,destinations,words\n0,2,9\n1,2,4\n")
    assert compute_row(first)["reason"].startswith(f"Traffic {files['a.csv']} was changed after")
    assert compute_row(first, contents)["result"] == row["result"]  # a worker on another machine
    again = grid_points(read_sweep(write(text)))
    assert {point_key(first)} == {*map(point_key, points)} - {*map(point_key, again)} - {
        point_key(p) for p in points if p["collective"] == "pattern,allreduce"
    }
    assert compute_row(others[0])["status"] == "done"


def test_defaults_are_left_to_the_planner(write):
    grid = read_sweep(write('topologies = ["4x4"]\ncollectives = ["allgather"]\n'))
    assert grid_points(grid) == [plan_step(algorithm="best")]


def test_faults_are_drawn_with_each_seed(write):
    """Random faults depend on the seed, have the wanted number, and cut off no node."""
    text = 'topologies = ["3x4", "mesh:2x4!0:+1"]\ncollectives = ["allgather"]\nseeds = 4\n'
    found = grid_points(read_sweep(write(f"{text}faults = [1, 2]\n")))
    assert found == grid_points(read_sweep(write(f"{text}faults = [1, 2]\n")))
    assert len(found) == 2 * 2 * 4
    for point in found:
        before = 1 if point["topology"].startswith("mesh") else 0
        topology = tf.parse_topology(point["topology"])
        assert isinstance(topology, Faulty)
        assert len(topology.broken_links) == before + point["faults"]
        assert not topology.broken_nodes
    assert compute_row(found[0])["result"]["topology"] == found[0]["topology"]
    with pytest.raises(InputError, match=r"^No 2 faults were found that leave a path between all "):
        grid_points(read_sweep(write(text.replace("3x4", "4") + "faults = 2\n")))


def test_all_stands_for_the_algorithms_that_know_the_collective(write):
    text = 'topologies = ["4x4"]\ncollectives = ["alltoall"]\nalgorithms = ["all", "best"]\n'
    names = [point["algorithm"] for point in grid_points(read_sweep(write(text)))]
    assert {"matching", "best"} <= set(names)
    assert "hamiltonian" not in names


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("topologies = [", r"^Sweep file \S+grid.toml must be TOML: "),
        (
            "width = [8]",
            r"^Key of a sweep must be one of steps, .*, not 'width' \(did you mean widths\?\)$",
        ),
        ('topologies = ["4x4"]', r"^The sweep lacks the key collectives; add it"),
        (
            'steps = ["synth"]\ntopologies = ["4x4"]\ncollectives = ["allgather"]',
            r"^The sweep lacks the key targets; add it",
        ),
        ('steps = ["fly"]', r"^Step must be one of plan, cycles, simulate, synth, not 'fly'$"),
        (
            'topologies = ["4x4"]\ncollectives = ["allgather"]\nchunks = [0]',
            r"^Key chunks of a sweep must be a list of positive integers, not \[0\]$",
        ),
        (
            'topologies = "4x4"\ncollectives = ["allgather"]',
            r"^Key topologies of a sweep must be a list of strings, not '4x4'$",
        ),
        (
            'topologies = ["4x4"]\ncollectives = ["allgather"]\nalgorithms = ["hamilton"]',
            r"^Algorithm must be one of .*, not 'hamilton' \(did you mean hamiltonian\?\)$",
        ),
        (
            'topologies = ["4x4"]\ncollectives = ["allgather"]\nmappings = ["best"]',
            r"^Mapping must be compact or fast, not 'best'$",
        ),
        (
            'topologies = ["4"]\ncollectives = ["allgather"]\nlink_latencies = ["x"]',
            r"^Link latency must be from 1 to 64 cycles, or AXIS:CYCLES,.., not x$",
        ),
        ('plans = ["none.json"]', "^Plan must be a schedule file, not none.json$"),
        (
            'topologies = ["4"]\ncollectives = ["pattern"]',
            "^The sweep lacks the key traffic; add it, as a list of files$",
        ),
        (
            'topologies = ["4"]\ncollectives = ["pattern"]\ntraffic = ["none.csv"]',
            "^Traffic must be a file, not none.csv$",
        ),
        (
            'topologies = ["4"]\ncollectives = ["allgather@{0,x}"]',
            "^Nodes of a group must be numbers and ranges",
        ),
        (
            'plans = ["grid.toml"]\ntopologies = ["4x4"]',
            "^Key topologies and key plans of a sweep exclude each other",
        ),
        ('steps = ["synth"]\nplans = ["grid.toml"]', "^The sweep lacks the key targets; add it"),
    ],
)
def test_misfit_descriptions(write, text, message, monkeypatch):
    path = write(text)
    monkeypatch.chdir(path.parent)
    with pytest.raises(InputError, match=message):
        read_sweep(path)


def test_link_latencies_need_not_fit_every_topology(write):
    text = 'topologies = ["4", "3x3"]\ncollectives = ["allgather"]\nlink_latencies = ["1:2"]\n'
    assert len(grid_points(read_sweep(write(text)))) == 2


def test_missing_description(tmp_path):
    with pytest.raises(InputError, match=r"^Sweep file .* could not be read: No such file"):
        read_sweep(tmp_path / "none.toml")


def test_command(write, capsys):
    path = write('topologies = ["3x3", "4x4"]\ncollectives = ["allgather"]\n')
    assert main(["sweep", str(path), "--json"]) == 0
    first = json.loads(capsys.readouterr().out)
    rows = path.with_suffix(".jsonl")
    assert first == {
        "version": 1, "results": str(rows), "rows": 2, "kept": 0, "done": 2, "misfits": 0,
        "failed": [],
    }  # fmt: skip
    before = rows.read_bytes()
    assert main(["sweep", str(path)]) == 0
    assert "kept     2" in capsys.readouterr().out
    assert rows.read_bytes() == before


def test_help_lists_what_a_sweep_may_hold(write, capsys, monkeypatch):
    """The example in the help is a valid sweep that has every key except `plans`."""
    with pytest.raises(SystemExit) as end:
        main(["sweep", "--help"])
    assert end.value.code == 0
    _, _, example = capsys.readouterr().out.partition("may be left out):\n")
    path = write(textwrap.dedent(example))
    monkeypatch.chdir(path.parent)
    for name in ("a.csv", "b.csv", "counts.csv"):
        (path.parent / name).write_text("source,destinations\n0,1\n")
    keys = re.findall(r"^(\w+) =", path.read_text(), re.M)
    assert sorted(keys) == sorted({"steps", *AXES, "pnr", "seeds"} - {"plans"})
    assert len(grid_points(read_sweep(path))) > 100


def test_schedule_files_in_place_of_topologies(write, tmp_path, capsys):
    """A sweep over a schedule file computes new rows once the content of the file changes."""
    plan, rows = tmp_path / "plan.json", tmp_path / "rows.jsonl"
    path = write('steps = ["plan", "simulate"]\nwidths = [8]\n')

    def swept(algorithm):
        assert main(["plan", "2x3", "allgather", "--algorithm", algorithm, "-o", str(plan)]) == 0
        assert main(["sweep", str(path), "--plan", str(plan), "-o", str(rows), "--quiet"]) == 0
        assert capsys.readouterr().err == ""
        return lines_of(rows)

    first = swept("matching")
    assert [row["result"]["algorithm"] for row in first] == ["matching"] * 2
    assert [row["result"]["words_wrong"] for row in first[1:]] == [0]
    assert swept("matching") == first
    assert [row["result"]["algorithm"] for row in swept("one-packet")[2:]] == ["one-packet"] * 2
