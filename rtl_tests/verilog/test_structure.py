"""What is said of a module as data is what its text says."""

import json

import pytest
from helpers import few

import torusfabric as tf
from torusfabric.toolchain import tools

#: All that Yosys needs to say what is declared.
SCRIPT = "read_verilog fabric.v; proc -norom; memory_collect; write_json fabric.json"


@pytest.mark.parametrize(
    ("topology", "collectives", "options", "hardware"),
    few(
        2,
        [
            ("3x4", ["allgather"], {"flits": 2}, {"top": "host"}),
            ("3x3", ["alltoall", "allreduce"], {"max_flits": 3}, {"bus": "wishbone"}),
            ("2x2", ["alltoall", "broadcast"], {"max_flits": 3, "root": "any"}, {"top": "stream"}),
        ],
    ),
)
def test_structures_are_those_of_the_text(topology, collectives, options, hardware, tmp_path):
    """Ports, widths of signals, memories; and the manifest has all modules."""
    schedules = [tf.plan(topology, collective) for collective in collectives]
    whole = schedules if len(schedules) > 1 else schedules[0]
    design = tf.emit(tf.Fabric(tf.compile(whole, **options), width=8, **hardware))
    design.write(tmp_path)
    tools.run("yosys", ["-q", "-p", SCRIPT], folder=tmp_path,
              log="yosys.log", what="the text", makes=["fabric.json"])  # fmt: skip
    read = json.loads((tmp_path / "fabric.json").read_text())["modules"]
    assert json.loads((tmp_path / "manifest.json").read_text())["modules"] == [*design.structures]
    assert [*design.structures] == [*design.modules]
    assert read.keys() >= design.modules.keys()
    for name, structure in design.structures.items():
        found = read[name]
        ports = {
            port: (each["direction"], len(each["bits"])) for port, each in found["ports"].items()
        }
        assert list(structure.ports) == list(ports)
        for port, (direction, width) in structure.ports.items():
            assert ports[port] == (direction, width or ports[port][1])
        signals = {net: len(each["bits"]) for net, each in found["netnames"].items()}
        assert structure.signals.items() <= signals.items()
        memories = {
            cell["parameters"]["MEMID"].strip("\\"): tuple(
                int(cell["parameters"][key], 2) for key in ("WIDTH", "SIZE")
            )
            for cell in found["cells"].values()
            if cell["type"].startswith("$mem")
        }
        shapes = {
            memory: (width, len(rows)) for memory, (width, rows) in structure.memories.items()
        }
        assert memories == shapes or name in (design.rom, "look_up")
