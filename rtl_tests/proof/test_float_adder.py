"""The floating-point adder is proved against the addition of z3's theory of IEEE 754."""

import re
from pathlib import Path

import pytest
from amaranth.back import rtlil
from amaranth.hdl import Module, Signal

from torusfabric.collective.float_adder import add_float_adder
from torusfabric.collective.floats import FORMATS, FloatFormat
from torusfabric.toolchain import tools

#: A format with 3 exponent and 2 fraction bits.
SMALL = FloatFormat("small", 3, 2)

#: The question to z3: two words whose sum by hardware is not their sum by IEEE 754.
QUESTION = """
(declare-fun s () |top_s|)
(define-fun value ((word (_ BitVec {width}))) (_ FloatingPoint {exponent} {significand})
  ((_ to_fp {exponent} {significand}) word))
(assert (not (= (value (|top_n result| s))
                (fp.add RNE (value (|top_n a| s)) (value (|top_n b| s))))))
(check-sat)
"""


def answer(number_format: FloatFormat, folder: Path, change: tuple[str, str] = ("", "")) -> str:
    """Return the answer of z3, `unsat` for a right adder; `change` plants a fault in its gates."""
    m, width = Module(), number_format.width
    a, b, result = (Signal(width, name=name) for name in ("a", "b", "result"))
    m.d.comb += result.eq(add_float_adder(m, number_format, (), a, b))
    (folder / "adder.il").write_text(rtlil.convert(m, ports=[a, b, result], emit_src=False))
    script = "read_rtlil adder.il; hierarchy -top top; proc; flatten; opt; write_smt2 adder.smt2"
    tools.run("yosys", ["-q", "-p", script], folder=folder, log="yosys.log")
    gates = (folder / "adder.smt2").read_text()
    assert re.search(re.escape(change[0]), gates)
    parts = {
        "exponent": number_format.exponent_bits,
        "significand": number_format.fraction_bits + 1,
    }
    question = gates.replace(*change, 1) + QUESTION.format(width=width, **parts)
    (folder / "question.smt2").write_text(question)
    tools.run("z3", ["question.smt2"], folder=folder, log="z3.log")
    return (folder / "z3.log").read_text()


def test_the_adder_of_a_small_format_is_proved(tmp_path: Path) -> None:
    assert "unsat" in answer(SMALL, tmp_path)


@pytest.mark.parametrize("change", [("bvadd", "bvsub"), ("bvugt", "bvult"), ("bvxor", "bvand")])
def test_a_planted_fault_is_found(change: tuple[str, str], tmp_path: Path) -> None:
    text = answer(SMALL, tmp_path, change)
    assert "sat" in text
    assert "unsat" not in text


@pytest.mark.long
@pytest.mark.parametrize("name", ["bf16", "fp16", "fp32"])
def test_the_adder_is_proved(name: str, tmp_path: Path) -> None:
    """All pairs of words; a minute of z3, and seven for binary32."""
    assert "unsat" in answer(FORMATS[name], tmp_path)
