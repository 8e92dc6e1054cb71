"""Modules in forms for ECP5, 6-input LUTs and silicon are proved to equal their usual form."""

import random
import re
from pathlib import Path

import pytest
from amaranth.hdl import ClockSignal, Module, Signal
from helpers import as_executed, fabric_of, few
from verilog_bench import have_icarus, run_icarus

from torusfabric.errors import WorkFailed
from torusfabric.rtl.chosen_sum import ChosenSum
from torusfabric.rtl.modules import Leaf, SharedInstance
from torusfabric.rtl.multiplexer import SLICE_BITS, Multiplexer, branched_select_bits, select_bits
from torusfabric.rtl.netlist import NetlistBuilder
from torusfabric.toolchain import tools
from torusfabric.verilog import text as module_file
from torusfabric.verilog import write
from torusfabric.verilog.ecp5 import ECP5
from torusfabric.verilog.lut6 import LUT6
from torusfabric.verilog.one_hot import ASIC
from torusfabric.verilog.text import module_texts

#: Widths: one slice of an odd number of bits, and two slices, the last of which is shorter.
WIDTHS = (5, SLICE_BITS + 3)

MULTIPLEXERS = [
    *(Multiplexer(count, 2, branched=False) for count in range(3, 21)),
    *(Multiplexer(count, 2, branched=True) for count in (6, 7, 8, 9)),
]
SUMS = [
    ChosenSum(count, width, idles)
    for width in WIDTHS
    for idles, most in ((False, 6), (True, 8))
    for count in range(2, most + 1)
]
SIX = [Multiplexer(count, 2, branched) for branched in (False, True) for count in range(4, 16)]
SHAPES = [*{*MULTIPLEXERS, *SUMS, *SIX}]

SCRIPT = """\
read_verilog -D{define} other.v
read_verilog -overwrite +/ecp5/cells_sim.v
read_verilog usual.v
read_verilog -sv -formal both.sv
hierarchy -top both
proc -norom
flatten
memory
chformal -lower
opt_clean
sat -verify -prove-asserts
"""


class Shared(Leaf):
    """An instance of each module."""

    def __init__(self):
        super().__init__({})

    def elaborate(self, platform):
        m = Module()
        for shape in SHAPES:
            *inputs, output = shape.shared_module.make_ports()
            ports = {f"i_{port.name}": Signal(len(port)) for port in inputs}
            m.submodules += SharedInstance(
                shape.shared_module, **ports, **{f"o_{output.name}": output}
            )
        return m


class Selecting(Leaf):
    """An instance of a selector."""

    def __init__(self, shape):
        super().__init__({})
        self.shape = shape

    def elaborate(self, platform):
        m, module = Module(), self.shape.selector_module
        ports = {port.name: Signal(len(port)) for port in module.make_ports()}
        word = ports.pop("word")
        given = {f"i_{name}": port for name, port in ports.items() if name != "clk"}
        m.submodules += SharedInstance(module, i_clk=ClockSignal(), o_word=word, **given)
        return m


def codes(shape):
    """Return the number of select bits of a slice, and the code that selects each input."""
    bits = (
        select_bits
        if isinstance(shape, Multiplexer) and not shape.branched
        else branched_select_bits
    )
    rows = [bits(shape.count, index) for index in range(shape.count)]
    return len(rows[0]), [sum(bit << n for n, bit in enumerate(row)) for row in rows]


def comparison(number, shape):
    """Return the text that drives both forms of a module alike, and asserts that they agree."""
    size, known = codes(shape)
    *inputs, output = shape.shared_module.make_ports()
    cases = "".join(f"{index}: code = {size}'d{code}; " for index, code in enumerate(known))
    text = ""
    for port in inputs:
        name = f"{port.name}_{number}"
        if port.name != "select":
            text += f"(* anyconst *) reg [{len(port) - 1}:0] {name};\n"
            continue
        slices = range(len(port) // size)
        text += "".join(
            f"(* anyconst *) reg [4:0] index_{number}_{k};\nreg [{size - 1}:0] code_{number}_{k};\n"
            f"always @* case (index_{number}_{k}) {cases.replace('code', f'code_{number}_{k}')}"
            f"default: code_{number}_{k} = {size}'d{known[0]}; endcase\n"
            for k in slices
        )
        of_slices = ", ".join(f"code_{number}_{k}" for k in reversed(slices))
        text += f"wire [{len(port) - 1}:0] {name} = {{{of_slices}}};\n"
    pins = "".join(f".{port.name}({port.name}_{number}), " for port in inputs)
    for form, prefix in (("usual", "usual_"), ("ecp5", "")):
        wire = f"{form}_{number}"
        text += f"wire [{len(output) - 1}:0] {wire};\n"
        text += f"{prefix}{shape.shared_module.name} the_{wire} ({pins}.{output.name}({wire}));\n"
    return text + f"always @* assert (usual_{number} == ecp5_{number});\n"


@pytest.fixture(scope="module")
def texts():
    """The Verilog of each module."""
    netlist = NetlistBuilder()
    netlist.add_module("shared", Shared)
    modules = module_texts(netlist.make_netlist())
    return {shape: modules[shape.shared_module.name].text for shape in SHAPES}


def prove(folder, texts, other=None, *, define=ECP5):
    """Prove that both forms of some modules agree; `other` replaces the ECP5 text."""
    both = "".join(comparison(number, shape) for number, shape in enumerate(texts))
    return prove_text(folder, "".join(texts.values()), both, other, define=define)


def prove_text(folder, usual, both, other=None, *, define=ECP5):
    """Prove the assertions of a text on modules and on their copies with the prefix `usual_`."""
    files = {
        "usual.v": re.sub(r"^module ", "module usual_", usual, flags=re.M),
        "other.v": other or usual,
        "both.sv": f"module both();\n{both}endmodule\n",
        "script.ys": SCRIPT.format(define=define),
    }
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    tools.run("yosys", ["-s", "script.ys"], folder=folder, log="log", what="both forms", makes=[])
    return (folder / "log").read_text(encoding="utf-8")


@pytest.mark.parametrize("shapes", [MULTIPLEXERS, SUMS], ids=["multiplexers", "sums"])
def test_both_forms_do_the_same(texts, tmp_path, shapes):
    """Both forms agree for every selection and all words, in each slice."""
    assert all(f"`ifdef {ECP5}" in texts[shape] for shape in shapes)
    log = prove(tmp_path, {shape: texts[shape] for shape in shapes})
    assert log.count("Import proof for assert") == len(shapes)


@pytest.mark.parametrize(
    ("define", "right", "fault"),
    [
        (LUT6, "= (select[4] | select[5])", "= (select[3] | select[5])"),
        (ASIC, "{enable[5]}", "{enable[4]}"),
    ],
)
def test_other_forms_do_the_same(texts, tmp_path, define, right, fault):
    """Forms for 6-input LUTs and silicon agree for all numbers of inputs; a fault is refuted."""
    some = {shape: texts[shape] for shape in SIX}
    assert prove(tmp_path, some, define=define).count("Import proof for assert") == len(SIX)
    shape = Multiplexer(8, 2, branched=True)
    wrong = texts[shape].replace(right, fault)
    assert wrong != texts[shape]
    with pytest.raises(WorkFailed, match="proof"):
        prove(tmp_path, {shape: texts[shape]}, wrong, define=define)


def prove_in_time(folder, usual, other, both):
    """Prove the assertions of a text on clocked modules, for all cycles; `usual` is unchanged."""
    script = (
        f"read_verilog -D{ASIC} other.v\nread_verilog usual.v\nread_verilog -sv -formal both.sv\n"
        "hierarchy -top both\nproc\nflatten\nmemory -nordff\nchformal -lower\nopt_clean\n"
        "sat -verify -prove-asserts -set-assumes -tempinduct\n"
    )
    files = {"usual.v": usual, "other.v": other, "both.sv": both, "s.ys": script}
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    tools.run("yosys", ["-s", "s.ys"], folder=folder, log="log", what="both", makes=[])


@pytest.mark.parametrize("count", [3, 5, 8])
def test_selectors_of_gates_hold_their_select_bits(tmp_path, count):
    """A selector for silicon passes the same words as the usual one, from the second cycle on."""
    netlist, shape = NetlistBuilder(), Multiplexer(count, SLICE_BITS + 3, branched=True)
    netlist.add_module("shared", lambda: Selecting(shape))
    modules = module_texts(netlist.make_netlist())
    text = "".join(module.text for name, module in modules.items() if name != "shared")
    name, (bits, known) = shape.selector_module.name, codes(shape)
    both = f"""module both(input clk, input [{count * shape.width - 1}:0] words,
      input [{bits - 1}:0] select);
      wire [{shape.width - 1}:0] one, other; reg later = 0;
      usual_{name} a (.clk(clk), .words(words), .select(select), .word(one));
      {name} b (.clk(clk), .words(words), .select(select), .word(other));
      wire known = {" || ".join(f"select == {bits}'d{code}" for code in known)};
      always @(posedge clk) later <= 1;
      always @* assume (known);
      always @* if (later) assert (one == other);
    endmodule
    """
    usual = re.sub(
        r"(\bmodule |^  )(?=(selector|branches|cascade)_)", r"\1usual_", text, flags=re.M
    )
    prove_in_time(tmp_path, usual, text, both)
    with pytest.raises(WorkFailed):
        prove_in_time(tmp_path, usual, text.replace("{enable[1]}", "{enable[0]}"), both)


@pytest.mark.parametrize(("rows", "width", "bits"), [(5, 7, 3), (70, 9, 7), (3, 2, 2), (4, 2, 3)])
def test_roms_of_gates_have_the_same_rows(tmp_path, rows, width, bits):
    """A ROM for silicon has the rows of the usual one; so has one that holds its address."""
    rom = Path(module_file.__file__).with_name("rom.v").read_text(encoding="utf-8")
    contents = random.Random(rows).getrandbits(rows * width)
    instance = (f"rom #(.DEPTH({rows}), .WIDTH({width}), .ADDRESS({bits}), "
                f".CONTENTS({rows * width}'d{contents}))")  # fmt: skip
    both = f"""module both(input clk, input [{bits - 1}:0] address);
      wire [{width - 1}:0] one, other; reg later = 0;
      usual_{instance} a (.clk(clk), .address(address), .data(one));
      {instance} b (.clk(clk), .address(address), .data(other));
      always @(posedge clk) later <= 1;
      always @* if (later) assert (one == other);
    endmodule
    """
    usual = rom.replace("module rom", "module usual_rom")
    prove_in_time(tmp_path, usual, rom, both)
    with pytest.raises(WorkFailed):
        prove_in_time(tmp_path, usual, rom.replace("{LAST}}", "{~LAST}}"), both)


def look_ups(width=3):
    """Return the text that asserts that both forms of a look-up table with random rows agree."""
    chance, text = random.Random(0), ""
    for depth in (17, 31, 32, 33, 36, 37, 48, 64):
        bits = (depth - 1).bit_length()
        contents = f"{depth * width}'h{chance.getrandbits(depth * width):x}"
        given = f".DEPTH({depth}), .WIDTH({width}), .ADDRESS({bits}), .CONTENTS({contents})"
        text += f"(* anyconst *) reg [{bits - 1}:0] row_{depth};\n"
        for form in ("usual_", ""):
            wire = f"{form}found_{depth}"
            text += f"wire [{width - 1}:0] {wire};\n{form}look_up #({given}) the_{wire} "
            text += f"(.address(row_{depth}), .data({wire}));\n"
        text += (
            f"always @* if (row_{depth} < {depth}) assert (usual_found_{depth} == found_{depth});\n"
        )
    return text


@pytest.fixture(scope="module")
def look_up():
    """The Verilog of the look-up table."""
    return Path(module_file.__file__).with_name("look_up.v").read_text(encoding="utf-8")


def test_both_forms_find_the_same(look_up, tmp_path):
    """Both forms of the look-up table agree for every address."""
    assert prove_text(tmp_path, look_up, look_ups()).count("Import proof for assert") == 8


@pytest.mark.skipif(not have_icarus(), reason="needs Icarus Verilog")
@pytest.mark.parametrize("define", [ECP5, LUT6, ASIC])
@pytest.mark.parametrize(
    ("topology", "collective", "width", "chunks", "modules"),
    few(
        4,
        [
            # Words are read through two stages, the second of which continues the first.
            ("2x2", "allgather", 8, 2, set()),
            ("3x3", "reduce-scatter", 8, 1, {"sum_2_8"}),
            ("4x5", "alltoall", 3, 1, {"branches_6_3"}),
            ("3x4", "allreduce", SLICE_BITS + 3, 1, {"sum_idle_4_19"}),
        ],
    ),
)
def test_fabrics_of_each_form_do_the_same(
    tmp_path, topology, collective, width, chunks, modules, define
):
    """Fabrics in each form give the words and cycles of the executed program in Icarus."""
    options = {"flits": 2} | ({"chunks": chunks} if chunks > 1 else {})
    fabric = fabric_of(topology, collective, "matching", width=width, **options)
    messages, executed = as_executed(fabric)
    write(fabric, tmp_path, command="torusfabric verilog ..")
    path = tmp_path / "fabric.v"
    text = path.read_text(encoding="utf-8")
    assert modules <= {*re.findall(rf"^module (\w+)(?=[^`]*`ifdef {ECP5})", text, re.M)}
    cells = (Path(__file__).parents[1] / "support" / "ecp5_cells.v").read_text(encoding="utf-8")
    path.write_text(f"`define {define}\n{text}\n{cells}", encoding="utf-8")
    base, count = fabric.layout.recv_base, fabric.layout.recv_words
    result = run_icarus(tmp_path, messages, [range(base, base + count)] * fabric.nodes, starts=2)
    assert [list(map(int, row)) for row in result.words] == executed.tolist()
    assert result.cycles == fabric.predicted_cycles
