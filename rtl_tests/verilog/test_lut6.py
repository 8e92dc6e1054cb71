"""Modules in a form for one device: proved to do what their usual form does."""

import random
import re
from pathlib import Path

import pytest
from amaranth.hdl import Module, Signal
from helpers import few

from torusfabric.errors import WorkFailed
from torusfabric.rtl.modules import Leaf, Use
from torusfabric.rtl.multiplexer import Multiplexer, branch_bits, select_bits
from torusfabric.rtl.netlist import NetlistBuilder
from torusfabric.toolchain import tools
from torusfabric.verilog import text as module_file
from torusfabric.verilog.lut6 import LUT6
from torusfabric.verilog.text import module_texts
from torusfabric.verilog.writer import ECP5

SHAPES = [Multiplexer(count, 2, branched) for branched in (False, True) for count in range(4, 16)]

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
            *inputs, output = shape.shared.ports()
            ports = {f"i_{port.name}": Signal(len(port)) for port in inputs}
            m.submodules += Use(shape.shared, **ports, **{f"o_{output.name}": output})
        return m


def codes(shape):
    """The select bits of a slice that make each input pass, as numbers."""
    bits = branch_bits if shape.branched else select_bits
    rows = [bits(shape.count, index) for index in range(shape.count)]
    return len(rows[0]), [sum(bit << n for n, bit in enumerate(row)) for row in rows]


def comparison(number, shape):
    """Text that gives both forms of a module the same, and says that they do the same."""
    size, known = codes(shape)
    *inputs, output = shape.shared.ports()
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
    for form, prefix in (("usual", "usual_"), ("other", "")):
        wire = f"{form}_{number}"
        text += f"wire [{len(output) - 1}:0] {wire};\n"
        text += f"{prefix}{shape.shared.name} the_{wire} ({pins}.{output.name}({wire}));\n"
    return text + f"always @* assert (usual_{number} == other_{number});\n"


@pytest.fixture(scope="module")
def texts():
    """The text of each module."""
    netlist = NetlistBuilder()
    netlist.add_module("shared", Shared)
    modules = module_texts(netlist.done())
    return {shape: modules[shape.shared.name].text for shape in SHAPES}


def prove(folder, texts, other=None):
    """Prove that both forms of some modules do the same, perhaps with another text of one form."""
    both = "".join(comparison(number, shape) for number, shape in enumerate(texts))
    return prove_text(folder, "".join(texts.values()), both, other, define=LUT6)


def prove_text(folder, usual, both, other=None, *, define=ECP5):
    """Prove what a text says of modules and of those whose names begin with `usual_`."""
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


def test_tables_of_six_inputs_do_the_same(texts, tmp_path):
    """Of all numbers of inputs, in branches or not; and a wrong select bit is found."""
    assert prove(tmp_path, texts).count("Import proof for assert") == len(SHAPES)
    shape = Multiplexer(8, 2, branched=True)
    wrong = texts[shape].replace("= (select[4] | select[5])", "= (select[3] | select[5])")
    assert wrong != texts[shape]
    with pytest.raises(WorkFailed, match="proof"):
        prove(tmp_path, {shape: texts[shape]}, wrong)


def look_ups(width=3):
    """Text that says of rows of random bits that both forms find the same."""
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
    """The text of the module."""
    return Path(module_file.__file__).with_name("look_up.v").read_text(encoding="utf-8")


def test_both_forms_find_the_same(look_up, tmp_path):
    """Whatever the rows and the address are."""
    assert prove_text(tmp_path, look_up, look_ups()).count("Import proof for assert") == 8


@pytest.mark.parametrize(
    ("found", "put"),
    few(
        3,
        [
            ("16*n", "16*(n ^ 1)"),
            ("address[2]", "address[3]"),
            ("DEPTH <= 36", "DEPTH <= 37"),
            ("DEPTH > 32", "DEPTH > 33"),
            ("ROWS[35:32]", "ROWS[34:31]"),
            (".SD(address[5])", ".SD(address[4])"),
        ],
    ),
)
def test_wrong_look_ups_are_found(look_up, tmp_path, found, put):
    """A wrong table, a wrong bit of the address, a wrong number of rows."""
    head, form = look_up.split("`ifdef")
    assert found in form
    with pytest.raises(WorkFailed, match="proof"):
        prove_text(tmp_path, look_up, look_ups(), f"{head}`ifdef{form.replace(found, put, 1)}")
