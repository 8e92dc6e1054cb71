"""What a tool wrote only in part, as on a full disk, is an error, and is not kept."""

import pytest

from torusfabric.errors import WorkFailed
from torusfabric.simulation.engines.cxxrtl import cxx_classes
from torusfabric.toolchain import tools
from torusfabric.toolchain.cache_size import usage
from torusfabric.verilog import ModuleText, Port, Structure


@pytest.fixture
def cut(monkeypatch, tmp_path):
    """Let each tool leave half a file."""

    def run(name, args, *, folder, makes, **_):
        (folder / makes[0]).write_text("module router (clk);\n  input clk;\nendmod")
        return ""

    monkeypatch.setattr(tools, "run", run)
    monkeypatch.setenv("TORUSFABRIC_CACHE", str(tmp_path))
    return tmp_path


def test_classes(cut):
    text = "module router (input clk);\nendmodule\n"
    router = ModuleText(text, Structure({"clk": Port("input")}), {})
    with pytest.raises(WorkFailed, match=r"^Tool yosys must write all of modules\.cc, not a part"):
        cxx_classes({"router": router})
    assert usage(cut).entries == 0
