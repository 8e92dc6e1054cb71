"""The command `compare`: cycles, hardware and misfits of algorithms."""

import json

import pytest
from helpers import check_refused
from msccl_generators import recursive_doubling_allgather

import torusfabric as tf
from torusfabric.cli import main
from torusfabric.collective import COLLECTIVES
from torusfabric.rtl.inventory import take_inventory

ROOTED = ("broadcast", "scatter", "gather", "reduce")


def compared(capsys, *words):
    """Return the JSON of `compare`: entries by algorithm, and the whole result."""
    assert main(["compare", *words, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    return {entry["algorithm"]: entry for entry in result["algorithms"]}, result


def test_allgather_on_8x8(capsys):
    """On 8x8, matching takes 16 steps, which is the bound, and one-packet takes 26."""
    entries, result = compared(capsys, "8x8", "allgather")
    assert (entries["matching"]["rounds"], entries["matching"]["bound"]) == (16, 16)
    assert entries["bufferless"]["rounds"] == 16
    assert (entries["one-packet"]["rounds"], entries["one-packet"]["tau"]) == (26, 26)
    assert entries["hamiltonian"]["rounds"] == 32
    assert (result["flits"], result["limit"]) == (4, 63)
    misfits = {"lee-code", "redistribute", "any-network", "any-traffic"}
    assert set(result["misfits"]) == misfits
    assert all(entry["cycles"] > 4 * 16 - 2 for entry in entries.values())


def test_same_message_for_all(capsys):
    """Cycles are those of the same message, padded where its chunks do not divide it."""
    entries, _ = compared(capsys, "4x4", "allgather", "--flits", "3")
    assert entries["matching"]["cycles"] == 4 * 3 + 5
    assert entries["hamiltonian"]["cycles"] == 8 * 2 + 5


def test_lengths(capsys, tmp_path):
    """A range of lengths is compared at its ends and at the powers of two between, and no cycles
    are below the limit.
    """
    words = (
        "compare",
        "3x3",
        "allreduce",
        "--flits",
        "3:9",
        "--plot",
        str(tmp_path / "curves.svg"),
    )
    assert main([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["flits"] == [3, 4, 8, 9]
    matching = tf.plan("3x3", "allreduce", algorithm="matching")
    expected = [tf.compile(matching, flits=flits).cycles() for flits in found["flits"]]
    assert found["cycles"]["matching"] == expected
    for cycles in found["cycles"].values():
        assert all(taken >= least for taken, least in zip(cycles, found["limit"], strict=True))
    drawn = (tmp_path / "curves.svg").read_text()
    assert all(f">{name}</text>" in drawn for name in found["cycles"])


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("--flits", "9:3"), "must be a range such as 1:1024, not '9:3'"),
        (("--flits", "0:3"), "must be a positive number, a list such as 1,10,100 or a range"),
        (("--flits", "1:4", "--max-flits", "4"), "--flits and --max-flits exclude each other"),
        (("--flits", "1:4", "--target", "ice40-hx8k"), "--target compares hardware for one length"),
    ],
)
def test_ranges_that_are_none(capsys, words, line):
    assert line in check_refused(capsys, "compare", "3x3", "allreduce", *words)


def test_sums(capsys):
    """Reductions are compared with the operator latency of the plan, or with the quickest."""
    best, _ = compared(capsys, "8x8", "reduce-scatter", "--flits", "1", "--latency", "auto")
    first, _ = compared(capsys, "8x8", "reduce-scatter", "--flits", "1")
    assert first["matching"]["rounds"] == 16 == first["matching"]["bound"]
    assert best["matching"]["cycles"] < first["matching"]["cycles"]
    rooted, _ = compared(capsys, "3x3", "reduce", "--root", "4", "--op", "max")
    assert {"max-flow", "diagonal", "necklace", "spanning-tree"} == set(rooted)


def test_groups(capsys):
    """In groups, `compare` lists the algorithms for one group, with the figures of one group."""
    entries, result = compared(capsys, "3x4", "allgather@1", "--flits", "2")
    alone, _ = compared(capsys, "4", "allgather", "--flits", "2")
    assert result["collective"] == "allgather@1"
    for name, entry in entries.items():
        same = ("rounds", "bound", "delta", "tau", "cycles", "memories")
        assert {key: entry[key] for key in same} == {key: alone[name][key] for key in same}
    assert set(entries) == set(alone)


def test_target(capsys):
    """With a target, entries have LUTs and flip-flops of the fabric, and LUTs of a router."""
    entries, _ = compared(
        capsys, "2", "allreduce:matching", "--target", "ice40-hx8k", "--width", "4"
    )
    for entry in entries.values():
        assert 0 <= entry["router_luts"] < entry["luts"]  # a router of wires has no LUTs
        assert entry["node_luts"] == round(entry["luts"] / 2)
        assert entry["ffs"] > 0


def test_one_algorithm(capsys):
    """An algorithm that is named with the collective is the only entry, at any length."""
    entries, result = compared(capsys, "3x3", "allgather:matching", "--max-flits", "3")
    assert list(entries) == ["matching"]
    assert result["misfits"] == {}
    program = tf.compile(tf.plan("3x3", "allgather:matching"), max_flits=3)
    assert entries["matching"]["cycles"] == program.cycles()


def test_all_collectives(capsys, tmp_path):
    """With `all`, each collective has a row with its best algorithm for the length, and its costs
    on an FPGA and in silicon are those that `synth` reports.
    """
    table = tmp_path / "costs.csv"
    words = ("compare", "2x2", "all", "--flits", "3", "--width", "4", "--op", "max", "--root", "2")
    target = ("--target", "ice40-hx8k,asic", "--table", str(table))
    assert main([*words, *target, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["flits"], result["target"], result["misfits"]) == (3, "ice40-hx8k,asic", {})
    found = {entry["collective"].partition(" ")[0]: entry for entry in result["collectives"]}
    assert found.keys() == COLLECTIVES.keys() - {"pattern"}
    for name, entry in found.items():
        collective = tf.parse_collective(name, root=2 if name in ROOTED else None)
        plan = tf.plan("2x2", collective, flits=3)
        program = tf.compile(plan, flits=3, operators=["max"] * plan.collective.reducing)
        assert (entry["algorithm"], entry["cycles"]) == (plan.algorithm, program.cycles()), name
        assert entry["cycles"] > entry["cycle_limit"] > 0
    fabric = tf.Fabric(tf.compile(tf.plan("2x2", "allgather", flits=3), flits=3), width=4)
    luts, gates = (tf.synthesize(fabric, each).fabric for each in ("ice40-hx8k", "asic"))
    row = found["allgather"]
    assert [row[name] for name in ("luts", "ffs", "brams")] == [
        luts[name] for name in ("luts", "ffs", "brams")
    ]
    assert row["gates"] == round(gates["gates"]) > 0
    heads, *rows = table.read_text().splitlines()
    assert heads.startswith("collective,algorithm,")
    assert [row.partition(",")[0] for row in rows] == [row["collective"] for row in found.values()]


def test_a_collective_without_an_algorithm(capsys):
    """A collective that cannot be planned is named below the table; the others are compared. If
    none can be planned, the command fails.
    """
    words = ("compare", "4", "all", "--ports", "1")
    assert main([*words]) == 0
    out = capsys.readouterr().out.splitlines()
    assert [line.partition(" ")[0] for line in out[2:5]] == ["broadcast", "gather", "reduce"]
    assert out[5].startswith("no allgather: No algorithm fits 4 allgather: ")
    assert main([*words, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert len(result["collectives"]) + len(result["misfits"]) == len(COLLECTIVES) - 1
    assert result["flits"] == 1
    assert "No algorithm fits" in check_refused(capsys, *words, "--trees", "7")


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("--target", "ecp5-25k,ice40-hx8k"), "--target must be one FPGA, asic or both, such as"),
        (("--target", "asic,asic"), "--target must be one FPGA, asic or both, such as"),
        (("--target", "xilinx-7", "--cost"), "--cost needs a --target that nextpnr knows"),
        (("--target", "ecp5-25k,"), "Target must be"),
        (("--flits", "1:4"), "must be one number for plans or several collectives"),
    ],
)
def test_costs_that_are_none(capsys, words, line):
    assert line in check_refused(capsys, "compare", "2x2", "all", *words)


def test_all_collectives_without_a_length(capsys):
    """Messages have a flit for each chunk of the schedule with the most chunks."""
    assert main(["compare", "3x3", "all", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    chunks = [entry["chunks"] for entry in result["collectives"]]
    assert result["flits"] == max(chunks) > min(chunks)


def test_several_collectives(capsys, tmp_path):
    """Engines are compared: the best algorithms, and each change of one algorithm."""
    words = ("3", "allgather,broadcast:max-flow", "--root", "2", "--max-flits", "4")
    plot = tmp_path / "bars.svg"
    assert main(["compare", *words, "--width", "8", "--plot", str(plot), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["collective"], result["max_flits"]) == ("allgather,broadcast", 4)
    first, *others = result["fabrics"]
    assert first["algorithms"] == ["hamiltonian", "max-flow"]
    assert {tuple(fabric["algorithms"]) for fabric in others} == {
        (name, "max-flow") for name in compared(capsys, "3", "allgather")[0]
    } - {tuple(first["algorithms"])}
    plans = [tf.plan("3", "allgather"), tf.plan("3", "broadcast", algorithm="max-flow", root=2)]
    program = tf.compile(plans, max_flits=4)
    assert first["cycles"] == [program.cycles(mode=mode) for mode in (0, 1)]
    assert first["memory_bits"] == take_inventory(tf.Fabric(program, width=8).netlist).memory_bits
    assert plot.read_text().count("<rect") == 1 + 4 * len(result["fabrics"])
    assert main(["compare", "3", "allgather:matching,broadcast", *words[2:]]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0] == "3 allgather, broadcast from 2: 32 bits a flit, up to 4 flits a message"
    assert len(out) >= 3


def test_table(capsys):
    """The text has a row for each algorithm, and the reason against each other one."""
    assert main(["compare", "3x5", "broadcast"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0].startswith("3x5 broadcast: 32 bits a flit, ")
    assert any(line.startswith("max-flow") and " circuits " in line for line in out)
    assert any(line.startswith("wormhole-forest needs ") for line in out)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("5x7", "broadcast", "--trees", "2", "--ports", "3"), "No algorithm fits 5x7 broadcast"),
        (("3x3", "allgather", "--target", "fpga"), "Target must be one of"),
        (("3x3", "allgather", "--op", "add"), "--op is for reductions"),
        (("3x3", "allgather,alltoall", "--op", "add"), "--op is for reductions"),
        (("3x3", "allgather,nonsense"), "Collective must be one of"),
        (("3x3", "allgather,alltoall:hamiltonian"), "hamiltonian"),
        (("3x3", "alltoall:hamiltonian"), "hamiltonian"),
        (("3x3", "allgather,alltoall", "--root", "1"), "--root 1 has no meaning here"),
        (
            ("3x3", "allgather", "--flits", "2", "--max-flits", "2"),
            "--flits and --max-flits exclude each other",
        ),
    ],
)
def test_bad_input(capsys, words, message):
    assert message in check_refused(capsys, "compare", *words)


def test_schedules_from_elsewhere(capsys, tmp_path):
    """MSCCL and schedule files are compared with built-in plans, as JSON and as bars."""
    files = [tmp_path / "doubling.xml", tmp_path / "ours.json"]
    files[0].write_text(recursive_doubling_allgather(4))
    assert main(["plan", "2x2", "allgather", "-o", str(files[1]), "--quiet"]) == 0
    capsys.readouterr()
    plans = ",".join(map(str, files))
    plot = tmp_path / "bars.svg"
    words = ["--plan", plans, "--topology", "2x2", "--map", "gray", "--plot", str(plot)]
    assert main(["compare", *words, "--json", "--quiet"]) == 0
    entries = json.loads(capsys.readouterr().out)["algorithms"]
    assert [entry["plan"] for entry in entries[:3]] == [*map(str, files), None]
    assert (entries[0]["algorithm"], entries[0]["rounds"]) == ("allgather_recursive_doubling", 2)
    assert all(0 < entry["links"]["use"] <= 1 for entry in entries)
    assert plot.read_text().count("<rect") == 1 + 3 * len(entries)
    assert main(["plan", "3", "allgather", "-o", str(files[1]), "--quiet"]) == 0
    assert "Topology of" in check_refused(capsys, "compare", *words, "--quiet")


def test_what_faults_cost(capsys):
    """Faults are compared: none, each one, and all, for the same root node."""
    words = ["compare", "3x3!0:+0,4", "broadcast", "--root", "5", "--flits", "6", "--json"]
    assert main(words) == 0
    found = json.loads(capsys.readouterr().out)["faults"]
    assert [one["faults"] for one in found] == ["", "0:+0", "4", "0:+0,4"]
    for one, root in zip(found, (6, 6, 5, 5), strict=True):
        topology = f"3x3!{one['faults']}".removesuffix("!")
        schedule = tf.plan(topology, "broadcast", root=root, flits=6)
        assert (one["algorithm"], one["rounds"]) == (schedule.algorithm, schedule.round_count)
        assert one["cycles"] == tf.compile(schedule, flits=6).cycles()
    assert main(["compare", "3x3!0:+0", "allgather"]) == 0
    assert "none" in capsys.readouterr().out.splitlines()[-2]
