"""Networks with relays, rates and broken links on several boards: simulation, bench and proof."""

import json
from dataclasses import replace
from functools import cache

import pytest
from helpers import few
from make_bench import have_bench, run_bench

import torusfabric as tf
from torusfabric.adapters.boards import prove_boards
from torusfabric.adapters.boards.drive import simulate_boards
from torusfabric.adapters.boards.files import emit_boards
from torusfabric.cli import main
from torusfabric.toolchain import tools

#: Options of commands for networks on several boards, with the number of link ports of a board.
NETWORKS = [
    ("4x2 --boards 2x1 --relay 1 --rate 2x1=1/2", 4),
    ("4x2 --boards 2x1 --relay 0-3", 4),
    ("4 --boards 2 --link-latency 8,0:-0=12,0:+0=3", 2),
    ("3x2 --boards 3x1 --rate 3x1=3/2", 8),
    ("4x4 --boards 2x2 --rate 0:2,2x2=1/3 --relay 0,1,4,5,15", 8),
    ("4x4 --boards 2x1 --rate 0:2,1:1/2", 16),
    ("4x4 --boards 2x1 --rate 0:2", 16),
    ("2x2x2 --boards 2x1x2 --rate 2x1x2=2,1/2 --relay 5", 16),
    ("4x4 --boards 2x1 --broken-link 0:+0 --broken-link 9:+1", 8),
]


def system_of(words, collective="allgather,allreduce", length="--max-flits 5"):
    network, *options = words.split()
    text = f"{network} {collective} {' '.join(options)} {length} --width 8"
    return tf.FabricSpec.parse(text).make().system


@pytest.mark.parametrize(("words", "links"), few(3, NETWORKS))
def test_all_words_and_cycles_are_right(words, links):
    """Boards pass random words on each network, with the cycles of one chip and the overhead."""
    system = system_of(words)
    assert system.link_plan.n_links == links
    report = simulate_boards(system, jobs=6)
    assert report.passed, report.first_wrong
    assert report.words_checked > 0 == report.words_wrong


@pytest.mark.parametrize(
    ("network", "collective", "option"),
    few(
        2,
        [
            ("--relay 2", "pattern", ("--traffic", "source,destinations,words\n0,5,3\n1,6 9,2\n")),
            ("--rate 2x1=1/3", "allgather", ("--counts", "1\n2\n3\n0\n5\n1\n1\n2\n" * 2)),
            ("--rate 2x1=2", "allreduce@{0-7}{8-14}", None),
            ("--relay 3", "alltoall@{0,1,5,9,11}", None),
            ("--rate 2x1=1/2", "pattern", ("--traffic", "source,destinations,words\n0,5,3\n")),
        ],
    ),
)
def test_listed_groups_patterns_and_unequal_lengths(tmp_path, network, collective, option):
    words = f"4x4 --boards 2x1 {network}"
    if option:
        (tmp_path / "file.csv").write_text(option[1])
        words += f" {option[0]} {tmp_path / 'file.csv'}"
    report = simulate_boards(system_of(words, collective, "" if option else "--flits 3"), jobs=3)
    assert report.passed, report.first_wrong
    assert report.words_checked


@pytest.mark.parametrize("option", few(1, ["--relay 3", "--rate 2x1=2"]))
def test_loaded_tables_serve_relays_and_rates(option):
    system = system_of(f"4x2 --boards 2x1 --tables ram {option}", "allgather")
    assert simulate_boards(system, jobs=3).passed


def test_cut_links_alone_have_their_latency():
    """On a network whose nodes differ, only links between boards take the least latency."""
    boards = system_of("4x2 --boards 2x1 --rate 2x1=1/2").boards
    assert set(sum(boards.latency_cycles, ())) == {9}
    assert boards.torus.cycles_of_arc[0].tolist() == [1, 9, 1, 1]
    # The links of one board may differ from those of another one.
    boards = system_of(NETWORKS[2][0]).boards
    assert [each[0] for each in boards.latency_cycles] == [12, 8]


@pytest.mark.parametrize(
    ("rate", "width", "bits", "parts"),
    few(3, [("1/3", 5, 2, 3), ("1/4", 5, 2, 3), ("2/2", 4, 4, 1), ("3/2", 7, 4, 2),
            ("1/16", 3, 1, 3), ("1/2", 1, 1, 1), ("1/2", 64, 32, 2)]),
)  # fmt: skip
def test_a_narrow_cable_carries_a_flit_in_parts(rate, width, bits, parts):
    """If all cut links have rates of at most 1/n, cables have one n-th of the bits of a flit."""
    words = f"4 alltoall --boards 2 --rate 2={rate} --flits 3 --width {width}"
    system = tf.FabricSpec.parse(words).make().system
    plan = system.link_plan
    assert (plan.width, plan.parts) == (bits, parts)
    assert system.netlists[0].outputs["link_0_tx_word"] == bits
    latency = system.boards.latency_cycles[0][0]
    assert plan.latencies == (latency - parts + 1,)
    assert latency == max(plan.least_latency, system.boards.link_spacing)
    report = simulate_boards(system, jobs=4, link_errors=1e-3)
    assert report.passed, report.first_wrong
    assert report.words_checked


def test_cables_carry_whole_flits_where_any_link_is_fast_or_tables_are_loaded():
    assert system_of("4x2 --boards 2x2 --rate 0:1/2", "allgather").link_plan.parts == 1
    loaded = "4 --boards 2 --rate 2=1/2 --link-latency 9 --tables ram"
    assert system_of(loaded, "allgather").link_plan.parts == 1


@cache
def narrow():
    """Return a fabric on two boards with narrow cables, and its Verilog."""
    system = system_of("4 --boards 2 --rate 2=1/3", "allgather", "--flits 2")
    return system, emit_boards(system)


@pytest.mark.skipif(tools.find("z3") is None, reason="needs z3")
@pytest.mark.parametrize(
    ("module", "old", "new", "step"),
    few(4, [
        ("router_0", "chooses_1 <= table", "chooses_1 <= ~table", "whole runs"),
        ("router_0", "& valid_0", "| valid_0", "whole runs"),
        ("splitter", "sends ? flit : ", "sends ? ~flit : ", "splitter"),
        ("joiner", "{came[1:0], kept}", "{kept, came[1:0]}", "joiner"),
        ("splitter", "assign part = word[2:0]", "assign part = word[5:3]", "splitter"),
        ("board_0", ".sends(sends[0][1])", ".sends(sends[0][0])", "splitter_0.sends"),
        ("board_0", ".flit(tx[0][15:8])", ".flit(tx[0][7:0])", "wiring"),
        ("board_0", ".came(came_0)", ".came(came_1)", "joiner_0.came"),
    ]),
)  # fmt: skip
def test_faults_of_narrow_cables_are_refuted(module, old, new, step):
    system, design = narrow()
    text = design.modules[module]
    assert old in text
    wrong = replace(design, modules=design.modules | {module: text.replace(old, new, 1)})
    proof = prove_boards(system, design=wrong)
    assert not proof.proved
    assert step in (proof.counterexample.module, proof.counterexample.signal)


@pytest.mark.parametrize("board", ["0", "1"])
def test_a_board_with_a_relay_runs_alone(capsys, board):
    """A board whose links lead back to itself passes what it can know."""
    words = "run 4 allgather --boards 2 --width 8 --port sim --relay 2 --rate 2=1/2 --json"
    assert main([*words.split(), "--block", board, "--job", "length=3"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["words_wrong"], found["words_checked"] > 0) == (0, True)


@pytest.mark.skipif(not have_bench(), reason="cocotb, make or Icarus is not installed")
@pytest.mark.parametrize("number", few(1, [1, 0, 4]))
def test_the_bench_passes(tmp_path, number):
    network, *options = NETWORKS[number][0].split()
    words = [network, "allgather", *options, "--max-flits", "4", "--width", "8"]
    assert main(["verilog", *words, "-o", str(tmp_path)]) == 0
    passed, text = run_bench(tmp_path, RUNS=3)
    assert passed, text[-3000:]


@pytest.mark.skipif(tools.find("z3") is None, reason="needs z3")
@pytest.mark.parametrize(
    "options", few(1, ["--rate 2x1=1/2,1:2 --relay 3", "--relay 0-3", "--rate 0:2"])
)
def test_boards_of_such_networks_are_proved(capsys, options):
    words = f"prove 4x2 allreduce --boards 2x1 {options} --flits 2 --width 4 --json"
    assert main(words.split()) == 0
    assert json.loads(capsys.readouterr().out)["proved"]


def test_a_plan_in_a_file_has_the_latency_of_boards(tmp_path, capsys):
    plan, end = str(tmp_path / "plan.json"), ["--boards", "2x1", "--width", "8"]
    for latency, line in (("2", "as in 2x1=9"), ("2,2x1=9", "")):
        words = ["4x2", "allgather", "--rate", "2x1=1/2", "--link-latency", latency, "-o", plan]
        assert main(["plan", *words]) == 0
        assert main(["simulate", "--plan", plan, *end]) == bool(line)
        assert line in capsys.readouterr().err
