"""Each private name of Amaranth that we use is there and means what we take it for.

The failure of a case says which name changed, and which of our modules need it. The cases import
Amaranth alone, so that they run even where a missing name stops the import of the package.
"""

import importlib
import re
from pathlib import Path

import pytest
from amaranth import tracer
from amaranth.hdl import Cat, ClockDomain, Const, Fragment, Module, Mux, Signal
from amaranth.lib.memory import Memory, MemoryData

from torusfabric.rtl.amaranth_private import no_inferred_names

# ruff: noqa: SLF001 (private attributes are the subject)

ROOT = Path(__file__).parents[2]
KEEPER = ROOT / "torusfabric/rtl/amaranth_private.py"


def private(name):
    """A private name of Amaranth, such as ``_ast.Part``."""
    module, attribute = name.split(".")
    return getattr(importlib.import_module(f"amaranth.hdl.{module}"), attribute)


def statements_of(m):
    return Fragment.get(m, None).statements["comb"]


def try_assign():
    m, x = Module(), Signal()
    m.d.comb += x.eq(1)
    [made] = statements_of(m)
    assert isinstance(made, private("_ast.Assign"))
    assert isinstance(made, private("_ast.Statement"))
    assert made.lhs is x
    assert isinstance(made.rhs, private("_ast.Const"))
    assert made.rhs.value == 1
    assert private("_ast.Assign")(x, Const(1)).lhs is x
    assert [*made._lhs_signals()] == [*x[:1]._lhs_signals()] == [x]


def try_switch():
    m, x = Module(), Signal(2)
    with m.If(x == 1):
        m.d.comb += x.eq(2)
    [made] = statements_of(m)
    [(patterns, statements, _)] = made.cases
    assert isinstance(made, private("_ast.Switch"))
    assert (patterns, len(statements)) == (("1",), 1)
    [(patterns, _, _)] = private("_ast.Switch")(made.test, made.cases, src_loc=made.src_loc).cases
    assert patterns == ("1",)


def try_switch_value():
    x = Signal(2)
    made = Mux(x[0], x, 1)
    assert isinstance(made, private("_ast.SwitchValue"))
    assert len(made.test) == 1
    assert [patterns for patterns, _ in made.cases] == [("0",), None]


def try_part():
    x, at = Signal(8), Signal(2)
    made = x.word_select(at, 2)
    assert isinstance(made, private("_ast.Part"))
    assert made.value is x
    assert made.offset is at
    assert (made.width, made.stride) == (2, 2)


def try_operator():
    x = Signal(2)
    assert isinstance(x + x, private("_ast.Operator"))
    assert (x + x).operands[1] is x
    operators = [each.operator for each in (x + 1, ~x, x.as_signed(), x.bool(), x.all())]
    assert operators == ["+", "~", "s", "b", "r&"]


def try_slice():
    x = Signal(4)
    made = x[1:3]
    assert isinstance(made, private("_ast.Slice"))
    assert made.value is x
    assert (made.start, made.stop) == (1, 3)


def try_concat():
    x = Signal(4)
    made = Cat(x, 1)
    assert isinstance(made, private("_ast.Concat"))
    assert made.parts[0] is x


def try_any_const():
    assert len(private("_ast.AnyConst")(2)) == 2


def try_signal():
    assert isinstance(Signal(), private("_ast.Signal"))


def try_memory_instance():
    m = Module()
    m.submodules.memory = memory = Memory(shape=4, depth=8, init=[3, 5], attrs={"style": "x"})
    port = memory.write_port(granularity=2)
    memory.read_port(transparent_for=(port,))
    memory.read_port(domain="comb")
    [(made, _, _)] = Fragment.get(m, None).subfragments
    assert isinstance(made, private("_mem.MemoryInstance"))
    assert (made._data.name, made._data.shape, made._data.depth) == ("memory", 4, 8)
    assert [*made._data.init] == [3, 5, 0, 0, 0, 0, 0, 0]
    assert made._attrs == {"style": "x"}
    read, at_once = made._read_ports
    assert (read._domain, read._transparent_for) == ("sync", (0,))
    assert (at_once._domain, at_once._transparent_for) == ("comb", ())
    assert (len(read._addr), len(read._data), len(read._en)) == (3, 4, 1)
    [write] = made._write_ports
    assert (write._domain, len(write._addr), len(write._data), len(write._en)) == ("sync", 3, 4, 2)


def make_netlist():
    """A netlist with a cell of each class that the compiled engine knows; and its register."""
    clk, rst, a, b = Signal(), Signal(), Signal(4), Signal(2)
    picked, number, held = Signal(4), Signal(2), Signal(4, init=9)
    m = Module()
    m.domains.sync = domain = ClockDomain()
    domain.clk, domain.rst = clk, rst
    m.submodules.memory = memory = Memory(shape=4, depth=3, init=[6])
    write, read, at_once = memory.write_port(), memory.read_port(), memory.read_port(domain="comb")
    m.d.comb += [port.addr.eq(b) for port in (write, read, at_once)]
    m.d.comb += [write.data.eq(a), write.en.eq(a[0])]
    with m.Switch(b):
        with m.Case(1):
            m.d.comb += picked.eq(a)
        with m.Case("1-"):
            m.d.comb += picked.eq(a + 1)
    m.d.comb += number.eq(a.word_select(b, 2))
    m.d.sync += held.eq(held ^ picked)
    way = private("_ir.PortDirection")
    inputs = {"clk": clk, "rst": rst, "a": a, "b": b}
    outputs = {"number": number, "held": held, "read": read.data, "at_once": at_once.data}
    ports = {key: (value, way.Input) for key, value in inputs.items()}
    ports |= {key: (value, way.Output) for key, value in outputs.items()}
    netlist = private("_nir.Netlist")()
    design = Fragment.get(m, None).prepare(ports=ports, hierarchy=("top",))
    private("_ir._emit_netlist")(netlist, design)
    netlist.resolve_all_nets()
    return netlist, held


def try_netlist():
    netlist, held = make_netlist()
    assert netlist.top.ports_i["a"][1] == 4
    assert {port: len(nets) for port, nets in netlist.top.ports_o.items()} == {
        "number": 2, "held": 4, "read": 4, "at_once": 4}  # fmt: skip
    nets = netlist.signals[held]
    assert isinstance(nets, private("_nir.Value"))
    assert isinstance(nets[3], private("_nir.Net"))
    # A bit is numbered by its cell and its place in the output of the cell.
    assert isinstance(netlist.cells[int(nets[3]) >> 16], private("_nir.FlipFlop"))
    assert int(nets[3]) & 0xFFFF == 3
    assert all(isinstance(cell, private("_nir.Cell")) for cell in netlist.cells)


def try_assignment():
    cells = [each for each in make_netlist()[0].cells if hasattr(each, "assignments")]
    first = cells[0].assignments[0]
    assert isinstance(first, private("_nir.Assignment"))
    assert (first.start, len(first.value), int(first.cond) > 1) == (0, 4, True)


def try_tracer():
    """Amaranth looks `get_var_name` up in `tracer`, and gives a default where it has one."""
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


#: Fields of cells: a number, a text, or the length of anything else; None where any will do.
CELLS = {
    "AssignmentList": {"default": 4, "assignments": 2},
    "AsyncReadPort": {"memory": None, "width": 4, "addr": 2},
    "FlipFlop": {"data": 4, "init": 9},
    "Matches": {"value": 2, "patterns": 1},
    "Memory": {"width": 4, "depth": 3, "init": 3, "name": "memory"},
    "Operator": {"operator": "^", "inputs": 2},
    "Part": {"value": 4, "value_signed": False, "offset": 2, "width": 2, "stride": 2},
    "PriorityMatch": {"en": None, "inputs": 2},
    "SyncReadPort": {"memory": None, "addr": 2, "en": None, "transparent_for": 0},
    "SyncWritePort": {"memory": None, "data": 4, "addr": 2, "en": 4},
}


def try_cell(name):
    """A cell of the class has the fields, with these values in the netlist."""
    found = []
    for cell in make_netlist()[0].cells:
        if isinstance(cell, private(f"_nir.{name}")):
            fields = {key: getattr(cell, key) for key in CELLS[name]}
            found.append([len(v) if isinstance(v, tuple | list) else v for v in fields.values()])
    wanted = [*CELLS[name].values()]
    assert any(
        all(w in (None, v) for w, v in zip(wanted, values, strict=True)) for values in found
    ), f"{name} {[*CELLS[name]]} is {found}, not {wanted}"


TRIALS = {
    "_ast.AnyConst": try_any_const,
    "_ast.Assign": try_assign,
    "_ast.Concat": try_concat,
    "_ast.Const": try_assign,
    "_ast.Operator": try_operator,
    "_ast.Part": try_part,
    "_ast.Signal": try_signal,
    "_ast.Slice": try_slice,
    "_ast.Statement": try_assign,
    "_ast.Switch": try_switch,
    "_ast.SwitchValue": try_switch_value,
    "_ir.PortDirection": try_netlist,
    "_ir._emit_netlist": try_netlist,
    "_mem.MemoryInstance": try_memory_instance,
    "_nir.Assignment": try_assignment,
    "_nir.Cell": try_netlist,
    "_nir.Net": try_netlist,
    "_nir.Netlist": try_netlist,
    "_nir.Value": try_netlist,
    "tracer.get_var_name": try_tracer,
    **{f"_nir.{name}": lambda name=name: try_cell(name) for name in CELLS},
}


def users_of_names():
    """The private names that our modules use, each with these modules."""
    users = {}
    for path in sorted((ROOT / "torusfabric").rglob("*.py")):
        text = path.read_text()
        if path == KEEPER or "amaranth_private import" in text:
            names = {f"_{a}.{b}" for a, b in re.findall(r"\b(ast|nir)\.([A-Z]\w+)", text)}
            names |= {"_mem.MemoryInstance"} & {f"_mem.{name}" for name in re.findall(r"\w+", text)}
            for name in names:
                users.setdefault(name, []).append(str(path.relative_to(ROOT)))
    return users


@pytest.mark.parametrize("name", TRIALS)
def test_private_name_means_what_we_take_it_for(name):
    try:
        TRIALS[name]()
    except Exception as error:
        users = ", ".join(users_of_names().get(name, [str(KEEPER.relative_to(ROOT))]))
        pytest.fail(f"amaranth {name} changed, needed by {users}: {error!r}")


def test_names_are_inferred_again_after_the_last_of_several_blocks():
    """Threads leave in any order."""
    first, second = no_inferred_names(), no_inferred_names()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    nameless = Signal()
    second.__exit__(None, None, None)
    named = Signal()
    assert (nameless.name, named.name) == ("$signal", "named")


def test_every_private_name_in_use_is_tried():
    assert users_of_names().keys() <= TRIALS.keys()


def test_one_module_imports_private_names():
    private_import = re.compile(r"(from|import) amaranth(\.\w+)*( import (_|tracer)|\._)")
    folders = ("torusfabric", "rtl_tests", "examples", "sim", "scripts", "docs")
    found = {path for each in folders for path in (ROOT / each).rglob("*.py")
             if private_import.search(path.read_text())}  # fmt: skip
    assert found == {KEEPER, Path(__file__)}
