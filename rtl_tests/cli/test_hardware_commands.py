"""Commands that make hardware report the hardware that the options ask for."""

import json

import pytest
from helpers import check_refused, leave_out_texts

import torusfabric as tf
from torusfabric.cli import main
from torusfabric.fpga.synthesis import synthesize as synthesis
from torusfabric.fpga.synthesis.report import SynthesisReport


@pytest.fixture(autouse=True)
def no_conversion(monkeypatch):
    leave_out_texts(monkeypatch)


@pytest.fixture
def designs(monkeypatch):
    """A synthesis that takes no time, and the list of designs that it received."""
    given = []

    def synthesize(design, target, *, mapping, seeds, **others):
        design = tf.emit(design) if isinstance(design, tf.Fabric) else design
        given.append(design)
        costs = {"luts": 1, "ffs": 1, "brams": 0, "capacity": {}}
        return SynthesisReport(
            target, mapping, design.interface, [], costs, {}, [], [], list(seeds), [], {}
        )

    monkeypatch.setattr(synthesis, "synthesize", synthesize)
    return given


@pytest.mark.parametrize("top", ["host", "core"])
def test_synth_reports_the_top_that_it_is_asked_for(capsys, designs, top):
    """`synth --top` decides the top that is synthesized and reported; a core has no host port."""
    words = ("synth", "2x2", "allgather", "--target", "ice40-hx8k", "--top", top)
    assert main([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["interface"] == top
    assert main(words) == 0
    assert f"{top} top" in capsys.readouterr().out
    for design in designs:
        assert ("host" in design.modules) == ("host" in design.parts) == (top == "host")


def test_synth_says_what_any_root_costs(capsys, designs):
    """`synth --root any` shows its memory bits beside those of root 0, if that can be planned."""
    words = ("synth", "2x3", "gather", "--root", "any", "--target", "ice40-hx8k")
    assert main([*words, "--algorithm", "max-flow", "--json"]) == 0
    cost = json.loads(capsys.readouterr().out)["any_root"]
    fixed = cost["from_node_0"]
    assert cost["algorithm"] == fixed["algorithm"] == "max-flow"
    assert cost["rom_bits"] > 6 * fixed["rom_bits"] > 0
    assert cost["memory_bits"] > fixed["memory_bits"]
    assert main(words) == 0
    assert "any root  " in capsys.readouterr().out
    assert main([*words, "--algorithm", "bufferless", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["any_root"]["from_node_0"] is None
    assert main([*words[:3], *words[5:], "--json"]) == 0
    assert "any_root" not in json.loads(capsys.readouterr().out)


def test_a_barrier_is_named_beside_collectives(capsys, tmp_path):
    """A barrier is a mode beside other collectives, and is refused alone."""
    words = ["verilog", "-o", str(tmp_path), "--top", "stream", "--width", "8", "--max-flits", "2"]
    assert main([*words, "2", "allgather,barrier"]) == 0
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert manifest["barrier"] == 1
    assert "--barrier" in manifest["command"]
    assert "A barrier needs another collective" in check_refused(capsys, *words, "2", "barrier")


def test_verilog_with_a_prefix(capsys, tmp_path):
    """The prefix is in the manifest, and in the command of the manifest."""
    words = ("verilog", "2x2", "gather", "--prefix", "left_", "-o", str(tmp_path))
    assert main(words) == 0
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert (manifest["prefix"], manifest["top"]) == ("left_", "left_fabric")
    assert manifest["command"].endswith("--prefix left_")
    assert "\nmodule left_fabric (" in (tmp_path / "fabric.v").read_text()


def test_bad_prefix_is_refused_before_the_work(capsys, tmp_path):
    """A wrong prefix is refused in one line, before a plan that takes long."""
    words = ("verilog", "1000x1000", "allgather", "--prefix", "2nd", "-o", str(tmp_path / "out"))
    assert main(words) == 1
    assert capsys.readouterr().err == (
        "torusfabric: Prefix must be a letter or _, then letters, digits and _, up to 64 in all, "
        "not '2nd'\n"
    )
    assert not (tmp_path / "out").exists()
