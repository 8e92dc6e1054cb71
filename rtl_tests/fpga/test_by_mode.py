"""Costs by mode: counts equal those of the hardware, and `synth` synthesizes each mode alone."""

import json

import pytest

import torusfabric as tf
from torusfabric import verilog
from torusfabric.cli import main
from torusfabric.fpga.synthesis import synthesize as synthesis
from torusfabric.fpga.synthesis.by_mode import count_memory_words
from torusfabric.fpga.synthesis.report import SynthesisReport
from torusfabric.program.counts import count_inputs
from torusfabric.rtl.inventory import take_inventory
from torusfabric.rtl.netlist import Role
from torusfabric.verilog import text as text_module


def fabric_of(topology, *names, root=None, **options):
    schedules = [tf.plan(topology, name) for name in names]
    return tf.Fabric(tf.compile(schedules, max_flits=4, root=root, **options), width=8)


def inputs_of(fabric):
    """Count the inputs of all crossbars in the routers of a fabric."""
    routers = (
        fabric.netlist.modules[r.module]() for r in fabric.netlist.instances_with_role(Role.ROUTER)
    )
    choices = (choice for router in routers for choice in router.choices if choice)
    return sum(len(choice.words) + choice.idles for choice in choices)


@pytest.mark.parametrize(
    "names",
    [
        ("allgather", "alltoall"),
        ("allgather:matching", "broadcast", "reduce-scatter"),
        ("allgather@0", "allgather@1"),
    ],
)
def test_inputs_are_those_of_the_routers(names):
    """The counted crossbar inputs equal those of the routers, in all and for each mode."""
    fabric = fabric_of("3x4", *names)
    inputs = count_inputs(fabric.program)
    assert inputs.total == inputs.shared + sum(inputs.own)
    assert inputs.total == inputs_of(fabric)
    for mode, count in enumerate(inputs.of_modes):
        assert count == inputs_of(tf.Fabric(fabric.program.part(mode), width=8))
        assert inputs.own[mode] <= count


def test_inputs_of_any_root():
    """For any root the count is an upper bound: a node may be at any offset from the root."""
    fabric = fabric_of("3x3", "allgather", "broadcast", root="any")
    assert count_inputs(fabric.program).total >= inputs_of(fabric)


@pytest.mark.parametrize(
    ("names", "maps"), [(("allgather", "alltoall"), 2), (("gather:max-flow", "reduce:max-flow"), 1)]
)
def test_words_are_those_of_the_memories(names, maps):
    """Modes with the same layout share send words, others add theirs, and memories hold all."""
    fabric = fabric_of("3x3", *names)
    words = count_memory_words(fabric.program)
    parts = [count_memory_words(fabric.program.part(mode)) for mode in range(2)]
    assert words.send_maps == maps
    assert words.sent == (sum if maps == 2 else max)(part.sent for part in parts)
    assert max(part.received for part in parts) <= words.received
    assert 8 * (words.received + words.sent) <= take_inventory(fabric.netlist).memory_bits


@pytest.fixture
def synthesized(monkeypatch):
    """Replace synthesis by a fast function; return the list of designs that it is given."""
    empty = verilog.ModuleText("", verilog.Structure({}), {})
    monkeypatch.setattr(
        text_module,
        "module_texts",
        lambda netlist, prefix, rule: {prefix + n: empty for n in [*netlist.modules, "rom"]},
    )
    given = []

    def synthesize(design, target, *, mapping, seeds=(), **others):
        if isinstance(design, tf.Fabric):
            design = verilog.emit(design)
        given.append(design)
        inputs = len(design.files)  # anything
        costs = {"luts": 50 * len(given), "ffs": inputs, "brams": 0}
        routers = [
            {
                "name": name,
                "nodes": each.nodes,
                "least_luts": 30,
                **costs,
                "luts": 40 + 8 * len(given),
            }
            for name, each in design.classes.items()
        ]
        return SynthesisReport(
            target, mapping, "host", routers, costs | {"capacity": {}}, {}, [], [], [], [], {}
        )

    monkeypatch.setattr(synthesis, "synthesize", synthesize)
    return given


def test_synth_shows_each_mode(capsys, synthesized):
    """`synth` reports each of several collectives alone, with the same width and length."""
    words = ("synth", "2x3", "allgather,alltoall", "--width", "8", "--max-flits", "5")
    words += ("--target", "ice40-hx8k")
    assert main([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["by_mode"]
    assert len(synthesized) == 3
    assert [mode["collective"] for mode in found["modes"]] == ["allgather", "alltoall"]
    for mode in found["modes"]:
        alone = tf.Fabric(
            tf.compile(tf.plan_forms("2x3", mode["collective"], max_flits=5), max_flits=5), width=8
        )
        assert mode["memory_bits"] == take_inventory(alone.netlist).memory_bits
        assert mode["inputs"] == inputs_of(alone)
    assert [mode["router_luts"] for mode in found["modes"]] == [56, 64]
    assert found["together"]["router_luts"] == 48
    assert found["ratios"]["router_luts"] == 0.75
    assert found["ratios"]["luts"] == 0.333
    assert found["ratios"]["brams"] is found["ratios"]["router_brams"] is None
    assert found["together"]["words"]["send_maps"] == 2
    assert (found["least_router_luts"], found["least_router_ratio"]) == (30, 0.469)
    assert main(words) == 0
    out = capsys.readouterr().out
    assert "together / largest alone" in out
    assert "takes at least 30 LUTs" in out
    assert "in 2 separate layouts" in out


def test_synth_of_one_collective_says_nothing_of_modes(capsys, synthesized):
    words = ("synth", "2x2", "allgather", "--max-flits", "4", "--target", "ice40-hx8k", "--json")
    assert main(words) == 0
    assert "by_mode" not in json.loads(capsys.readouterr().out)
    assert len(synthesized) == 1
