"""Prefixes of module names: several fabrics in one design."""

import pytest
from core_verilog_bench import Core, run_cores
from helpers import expected_words, fabric_of, random_messages
from verilog_bench import have_icarus

from torusfabric import verilog
from torusfabric.errors import InputError
from torusfabric.rtl import Fabric


@pytest.mark.skipif(not have_icarus(), reason="needs Icarus Verilog")
def test_two_fabrics_in_one_simulation(tmp_path):
    """Cores with different prefixes run side by side, each by what its own manifest says."""
    cores, fabrics, messages = [], [], []
    for prefix, collective, width in (("left_", "allgather", 8), ("Right2", "alltoall", 16)):
        program = fabric_of("2x2", collective, flits=5).program
        fabric = Fabric(program, width=width, top="core", prefix=prefix)
        design = verilog.write(fabric, tmp_path / prefix, command="..")
        assert all(name.startswith(prefix) for name in design.modules)
        fabrics.append(fabric)
        messages.append(random_messages(fabric, 1))
        cores.append(Core.of(tmp_path / prefix, messages[-1]))
        assert cores[-1].manifest["top"] == f"{prefix}fabric"
        assert cores[-1].manifest["prefix"] == prefix
    for fabric, sent, found in zip(fabrics, messages, run_cores(cores), strict=True):
        words, _ = expected_words(fabric.program, sent)
        words = words.reshape(fabric.nodes, fabric.program.layout.recv_parts, fabric.flits)
        assert found == {key: words[key] for key in found}
        # What a node sends to itself does not arrive by a stream.
        assert len(found) == words.size - fabric.streaming * fabric.nodes * fabric.flits


@pytest.mark.parametrize("prefix", ["", "_", "a", "A9_", "x" * 64])
def test_prefixes(prefix):
    """Letters, digits and underscores, in the manifest too."""
    fabric = Fabric(fabric_of("2x2", "allgather").program, prefix=prefix)
    said = verilog.manifest(fabric, command="", files=[])
    assert (said["prefix"], said["top"]) == (prefix, f"{prefix}fabric")


@pytest.mark.parametrize("prefix", ["3x", "a-b", "a b", "a\n", "\\a ", "é", "$a", "x" * 65])
def test_bad_prefixes(prefix):
    """What cannot begin a name is refused, in one line."""
    with pytest.raises(InputError, match=r"^Prefix must be [^\n]*, not '[^\n]*'$"):
        Fabric(fabric_of("2x2", "allgather").program, prefix=prefix)
