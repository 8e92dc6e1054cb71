"""Private names of Amaranth: each name in use exists, and one module imports them.

Their meaning is tested against Amaranth's simulator by `rtl_tests/verilog/test_writer.py` and
`rtl_tests/simulation/test_compiled_cells.py`.
"""

import importlib
import re
from pathlib import Path

from amaranth import tracer
from amaranth.hdl import Signal
from amaranth.lib.memory import MemoryData

from torusfabric.rtl.amaranth_private import no_inferred_names

ROOT = Path(__file__).parents[2]
KEEPER = ROOT / "torusfabric/rtl/amaranth_private.py"


def users_of_names():
    """Map each private name in use to the modules that use it."""
    users = {}
    for path in sorted((ROOT / "torusfabric").rglob("*.py")):
        text = path.read_text()
        if path == KEEPER or "amaranth_private import" in text:
            names = {f"_{a}.{b}" for a, b in re.findall(r"\b(ast|nir)\.([A-Z]\w+)", text)}
            names |= {"_mem.MemoryInstance"} & {f"_mem.{name}" for name in re.findall(r"\w+", text)}
            for name in names:
                users.setdefault(name, []).append(str(path.relative_to(ROOT)))
    return users


def test_every_private_name_in_use_is_there():
    """Every private name in use exists; the failure shows the modules that need a missing name."""
    missing = {}
    for name, users in users_of_names().items():
        module, attribute = name.split(".")
        if not hasattr(importlib.import_module(f"amaranth.hdl.{module}"), attribute):
            missing[name] = users
    assert not missing


def test_names_are_inferred_by_the_tracer():
    """Amaranth looks `get_var_name` up in `tracer`, and passes a default where it has one."""
    infer, asked = tracer.get_var_name, []
    tracer.get_var_name = lambda depth=2, **options: asked.append((depth, options)) or "asked"
    try:
        assert Signal().name == "asked"
        assert MemoryData(shape=1, depth=1, init=[]).name == "asked"
    finally:
        tracer.get_var_name = infer
    (depth, options), (_, others) = asked
    assert isinstance(depth, int)
    assert (options.keys() | others.keys()) == {"default"}


def test_names_are_inferred_again_after_the_last_of_several_blocks():
    """Names are inferred again after the last of several overlapping blocks ends."""
    first, second = no_inferred_names(), no_inferred_names()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    nameless = Signal()
    second.__exit__(None, None, None)
    named = Signal()
    assert (nameless.name, named.name) == ("$signal", "named")


def test_one_module_imports_private_names():
    private_import = re.compile(r"(from|import) amaranth(\.\w+)*( import (_|tracer)|\._)")
    folders = ("torusfabric", "rtl_tests", "examples", "sim", "scripts", "docs")
    found = {path for each in folders for path in (ROOT / each).rglob("*.py")
             if private_import.search(path.read_text())}  # fmt: skip
    assert found == {KEEPER, Path(__file__)}
