"""Random modules: their emitted Verilog in Icarus equals Amaranth's simulator."""

import random
import re
import subprocess

import pytest
from amaranth.hdl import Array, Cat, Const, Instance, Module, Mux, Print, Signal, signed
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out
from helpers import few, simulated
from verilog_bench import have_icarus

from torusfabric.errors import InputError
from torusfabric.rtl.amaranth_private import ast, no_inferred_names
from torusfabric.verilog.writer import Heading, write_module

INPUTS = {"a": 5, "b": 3, "c": signed(4), "d": 1, "e": signed(7), "f": 8}

OUTPUTS, CYCLES = 12, 60


def drawn(rng, inputs, depth):
    """Return a random expression of the inputs."""
    if depth == 0 or rng.random() < 0.1:
        if rng.random() < 0.25:
            return Const(rng.randrange(16), rng.randrange(4, 7))
        return rng.choice(inputs)
    one = lambda: drawn(rng, inputs, depth - 1)
    kind = rng.randrange(16)
    if kind < 5:
        a, b = one(), one()
        return [a + b, a - b, a & b, a | b, a ^ b][kind]
    if kind == 5:
        return ~one()
    if kind == 6:
        a, b = one(), one()
        return rng.choice([a < b, a <= b, a == b, a != b, a >= b])
    if kind == 7:
        return Mux(one(), one(), one())
    if kind == 8:
        value = Cat(one(), one(), one())
        low = rng.randrange(len(value))
        return value[low : rng.randrange(low + 1, len(value) + 1)]
    if kind == 9:
        return rng.choice([one().any(), one().all(), one().xor(), one().bool()])
    if kind == 10:
        # A selection from the result of an operator differs: Amaranth's simulator shifts in bits.
        value = rng.choice(inputs)
        return value.bit_select(one().as_unsigned()[:3], rng.randrange(1, len(value) + 1))
    if kind == 11:
        bits = rng.choice([1, 2, 3])
        # An array of constants is a table. An array may lack its last value.
        given = [one() for _ in range(rng.randrange(2**bits - 1, 2**bits) + 1)]
        table = [Const(rng.randrange(6), 4) for _ in given]
        return Array(rng.choice([given, table]))[rng.choice(inputs).as_unsigned()[:bits]]
    if kind == 12:
        value = one()
        return rng.choice([value.as_signed(), value.as_unsigned(), -value])
    if kind == 14:
        a, b = one(), one()
        return rng.choice([a // b, a % b])
    if kind == 15:
        return one().as_signed() >> one().as_unsigned()[:2]
    amount = one().as_unsigned()[:2]
    return rng.choice([one().as_unsigned() << amount, one().as_unsigned() >> amount])


class Drawn(wiring.Component):
    """A random module with logic, registers and a memory."""

    def __init__(self, seed):
        self.seed = seed
        super().__init__(
            {name: In(shape) for name, shape in INPUTS.items()}
            | {f"o_{k}": Out(rng_width(seed, k)) for k in range(OUTPUTS)}
        )

    def statements(self, rng, m, domain, targets, values, depth):
        """Add random statements under random conditions."""
        for _ in range(rng.randrange(1, 4)):
            kind = rng.random()
            if depth == 0 or kind < 0.4:
                target = rng.choice(targets)
                low = rng.randrange(len(target)) if rng.random() < 0.3 else 0
                if rng.random() < 0.2:
                    # One of several targets with different widths.
                    target, low = Array(targets)[rng.choice(values).as_unsigned()[:2]], 0
                domain += target[low:].eq(drawn(rng, values, 2))
            elif kind < 0.7:
                never = Const(rng.randrange(2), 1)
                first = drawn(rng, values, 2).as_unsigned().bool()
                with m.If(rng.choice([first, first, first | never, first & never, never])):
                    self.statements(rng, m, domain, targets, values, depth - 1)
                with m.Elif(drawn(rng, values, 1).as_unsigned()):
                    self.statements(rng, m, domain, targets, values, depth - 1)
                if rng.random() < 0.5:
                    with m.Else():
                        self.statements(rng, m, domain, targets, values, depth - 1)
            else:
                with m.Switch(rng.choice(values).as_unsigned()[:3]):
                    test = rng.sample(range(2), 2)
                    with m.Case(*test):
                        self.statements(rng, m, domain, targets, values, depth - 1)
                    with m.Default():
                        self.statements(rng, m, domain, targets, values, depth - 1)

    def elaborate(self, platform):
        m, rng = Module(), random.Random(self.seed)
        values = [getattr(self, name) for name in INPUTS]
        outputs = [getattr(self, f"o_{k}") for k in range(OUTPUTS)]
        plain = Signal(6, name="later", reset_less=True)
        m.d.sync += plain.eq(drawn(rng, values, 2))
        m.submodules.words = words = memory.Memory(shape=8, depth=8, init=[3, 250])
        write, read = words.write_port(granularity=4), words.read_port(transparent_for=())
        m.d.comb += [
            write.addr.eq(self.b),
            write.data.eq(self.f),
            write.en.eq(self.a),
            read.en.eq(self.d),
        ]
        # Icarus would keep the carry of a sum in an index, and read beyond the end of the memory.
        read.addr = (self.b + self.f[:3])[:3]
        known = [*values, plain, read.data]
        for output in outputs[:4]:
            m.d.comb += output.eq(drawn(rng, known, 4))
        m.d.comb += [output[:1].eq(self.d) for output in outputs[4:8]]
        m.d.sync += [output.eq(output + 1) for output in outputs[8:11]]
        self.statements(rng, m, m.d.comb, outputs[4:8], known, 2)
        self.statements(rng, m, m.d.sync, outputs[8:11], known + outputs[8:11], 3)
        # A part of a concatenation may have no bits.
        halves = outputs[11][:1], Signal(0, name="nothing"), outputs[11][1:]
        m.d.comb += Cat(*halves).eq(drawn(rng, known, 3))
        return m


def rng_width(seed, k):
    """The width of an output in bits."""
    return random.Random(f"{seed} {k}").randrange(2, 10)


def stimulus(seed):
    """Random inputs for each cycle."""
    rng = random.Random(f"stimulus {seed}")
    return [
        {name: rng.randrange(256) % (1 << len(Signal(shape))) for name, shape in INPUTS.items()}
        for _ in range(CYCLES)
    ]


def in_amaranth(seed, cycles):
    """Return the outputs in each cycle in Amaranth's simulator."""
    design, found = Drawn(seed), []

    async def bench(ctx):
        for inputs in cycles:
            for name, value in inputs.items():
                signal = getattr(design, name)
                half = 1 << len(signal) - 1
                negative = signal.shape().signed and value >= half
                ctx.set(signal, value - 2 * half if negative else value)
            found.append([ctx.get(getattr(design, f"o_{k}")) for k in range(OUTPUTS)])
            await ctx.tick()

    simulated(design, bench)
    return found


def in_icarus(seed, cycles, folder):
    """Return the outputs in each cycle of the emitted Verilog in Icarus."""
    design = Drawn(seed)
    ports = {name: getattr(design, name) for name in design.signature.members}
    with no_inferred_names():
        written = write_module(Heading("drawn", clocked=True), design, ports)
    text = written.text
    assert "\\" not in text
    # Registers without a reset begin as 0 in Amaranth's simulator.
    clear = "".join(f"dut.{name} = 0; " for name in written.structure.clocked)
    declared = "".join(f"reg [{len(ports[name]) - 1}:0] {name};\n" for name in INPUTS)
    declared += "".join(
        f"wire [{len(ports[name]) - 1}:0] {name};\n" for name in ports if name not in INPUTS
    )
    steps = []
    shown = ", ".join(f"o_{k}" for k in range(OUTPUTS))
    for inputs in cycles:
        steps += [f"{name} = {value};" for name, value in inputs.items()]
        steps += [f'#1 $display("{"%0d " * OUTPUTS}", {shown});', "clk = 1; #1 clk = 0;"]
    pins = ", ".join(f".{name}({name})" for name in ["clk", "rst", *ports])
    first = "".join(f"{name} = 0;" for name in INPUTS)
    bench = (
        f"{text}\nmodule bench;\nreg clk = 0, rst = 0;\n{declared}drawn dut({pins});\n"
        f"initial begin\n{first} rst = 1; #1 {clear} clk = 1; #1 clk = 0; rst = 0; {clear}\n"
        + "\n".join(steps)
        + "\nend\nendmodule\n"
    )
    (folder / "bench.v").write_text(bench)
    made = ["iverilog", "-g2005", "-Wall", "-s", "bench", "-o", "bench", "bench.v"]
    done = subprocess.run(made, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = subprocess.run(["./bench"], cwd=folder, capture_output=True, text=True).stdout
    return [list(map(int, line.split())) for line in lines.splitlines()]


@pytest.mark.parametrize("seed", few(5, [*range(300)]))
def test_what_is_written_does_what_is_simulated(tmp_path, seed):
    if not have_icarus():
        pytest.skip("Icarus Verilog is not installed")
    cycles = stimulus(seed)
    assert in_icarus(seed, cycles, tmp_path) == in_amaranth(seed, cycles)


def test_what_has_no_verilog_is_refused():
    """Hardware without Verilog, such as Print or AnyConst, is refused with one line."""
    m, seen = Module(), Signal(2)
    m.d.comb += Print(seen)
    with pytest.raises(InputError, match=r"^Hardware must be made of logic, .* not \(print .*\)$"):
        write_module(Heading("talks"), m, {"seen": seen})
    m, seen = Module(), Signal(2)
    m.d.comb += seen.eq(ast.AnyConst(2))
    with pytest.raises(InputError, match=r"^Hardware must be made of logic"):
        write_module(Heading("any"), m, {"seen": seen})


def test_bits_of_different_domains_are_refused():
    """A signal is refused if logic, a register or an instance drive different bits of it.

    Instances alone may drive a signal together.
    """

    def written(*domains):
        m, value = Module(), Signal(4, name="value")
        for k, domain in enumerate(domains):
            if domain == "instance":
                m.submodules += Instance("part", o_bit=value[k])
            elif domain == "inner":
                m.submodules.inner = inner = Module()
                inner.d.comb += value[k].eq(1)
            else:
                m.d[domain] += value[k].eq(~value[k])
        return write_module(Heading("mixed"), m, {"value": value}).text

    message = r"^Signal value must be driven in one clock domain of one component, or by logic;"
    for domains in (("comb", "sync"), ("sync", "other"), ("comb", "instance"), ("comb", "inner")):
        with pytest.raises(InputError, match=message):
            written(*domains)
    assert written("comb", "comb").count("assign value") == 3
    assert written("sync", "sync").count("<=") == 3
    assert written("instance", "instance").count(".bit(value[") == 2


def test_a_port_called_like_a_keyword_is_refused():
    """The name of a port is that of the user, so it is not changed."""
    m, begin, value = Module(), Signal(name="begin"), Signal(name="value")
    m.d.comb += value.eq(begin)
    with pytest.raises(InputError, match=r"^Port begin must not be .*; call it begin_$"):
        write_module(Heading("named"), m, {"begin": begin, "value": value})


def test_a_transparent_read_port_is_refused():
    m, shown = Module(), Signal(4, name="shown")
    m.submodules.words = words = memory.Memory(shape=4, depth=2, init=[])
    read = words.read_port(transparent_for=(words.write_port(),))
    m.d.comb += shown.eq(read.data)
    with pytest.raises(InputError, match=r"^Memory words must .*; leave transparent_for out"):
        write_module(Heading("memory"), m, {"shown": shown})


@pytest.mark.skipif(not have_icarus(), reason="needs Icarus Verilog")
def test_a_memory_of_one_word(tmp_path):
    """A memory of one word has no address, and is read and written in Verilog."""
    m, value, shown = Module(), Signal(4, name="value"), Signal(8, name="shown")
    m.submodules.words = words = memory.Memory(shape=4, depth=1, init=[9])
    write, read = words.write_port(), words.read_port()
    m.d.comb += [
        write.data.eq(value),
        write.en.eq(value[0]),
        shown.eq(Cat(read.data, words.read_port(domain="comb").data)),
    ]
    text = write_module(Heading("dut"), m, {"value": value, "shown": shown}).text
    bench = """module tb; reg clk = 0; reg [3:0] value; wire [7:0] shown; integer n;
      dut d(.clk(clk), .value(value), .shown(shown));
      initial for (n = 1; n < 6; n = n + 1) begin
        value = n; #1 clk = 1; #1 clk = 0; #1 $display("%0d", shown); end
    endmodule"""
    (tmp_path / "bench.v").write_text(text + bench)
    build = ["iverilog", "-g2005", "-Wall", "-s", "tb", "-o", "bench.vvp", "bench.v"]
    subprocess.run(build, cwd=tmp_path, check=True)
    run = subprocess.run(["vvp", "-n", "bench.vvp"], cwd=tmp_path, check=True, capture_output=True)
    assert [divmod(int(n), 16) for n in run.stdout.split()] == [
        *((1, 9), (1, 1), (3, 1), (3, 3), (5, 3))
    ]


def test_names_are_no_words_of_the_language(tmp_path):
    """A signal named like a keyword gets an underscore; equal names get numbers."""
    m = Module()
    signals = [Signal(name=name) for name in ("table", "before", "x", "x")]
    chain = [Signal(name="input_bit"), *signals]
    for before, after in zip(chain, signals, strict=False):
        m.d.comb += after.eq(~before)
    text = write_module(Heading("named"), m, {"i": chain[0], "o": signals[-1]}).text
    names = set(re.findall(r"assign (\w+) =", text))
    assert names == {"table_", "before_", "x", "o"}


@pytest.mark.skipif(not have_icarus(), reason="needs Icarus Verilog")
def test_logic_that_assigns_bits_at_an_offset(tmp_path):
    """Bits beyond the end are dropped, later assignments win, and other bits keep their value."""
    m, offset, value = Module(), Signal(3, name="offset"), Signal(2, name="value")
    words, found = Signal(name="words"), Signal(7, name="found", init=0b1010101)
    m.d.comb += found.bit_select(offset, 2).eq(value)
    with m.If(words):
        m.d.comb += found.word_select(offset[:1], 3).eq(Cat(value, value))
    inputs = {"offset": offset, "value": value, "words": words}
    text = write_module(Heading("dut"), m, inputs | {"found": found}).text
    bench = """module tb; reg [5:0] k; wire [6:0] found; integer n;
      dut d(.offset(k[2:0]), .value(k[4:3]), .words(k[5]), .found(found));
      initial for (n = 0; n < 64; n = n + 1) begin k = n; #1 $display("%0d", found); end
    endmodule"""
    (tmp_path / "bench.v").write_text(text + bench)
    build = ["iverilog", "-g2012", "-s", "tb", "-o", "bench.vvp", "bench.v"]
    subprocess.run(build, cwd=tmp_path, check=True)
    run = subprocess.run(["vvp", "-n", "bench.vvp"], cwd=tmp_path, check=True, capture_output=True)
    expected = []
    for k in range(64):
        shift, word = k & 7, k >> 3 & 3
        bits = 0b1010101 & ~(3 << shift) | word << shift
        if k >> 5:
            shift = 3 * (shift & 1)
            bits = bits & ~(7 << shift) | (word << 2 | word) % 8 << shift
        expected.append(bits % 128)
    assert list(map(int, run.stdout.split())) == expected


def test_what_changes_nothing_is_left_out():
    """A product with 0 becomes a constant, and constant ones in a conjunction are omitted."""
    m, a, b = Module(), Signal(3, name="a"), Signal(name="b")
    every, product = Signal(name="every"), Signal(4, name="product")
    m.d.comb += [every.eq(Cat(Const(3, 2), a < 2, b, a).all()), product.eq(a * Const(0, 3))]
    ports = {"a": a, "b": b, "every": every, "product": product}
    text = write_module(Heading("reduced"), m, ports).text
    assert "assign every = (a < 3'd2) & b & (&a);" in text
    assert "assign product = 4'd0;" in text


def test_a_register_without_bits_is_left_out():
    """A register with one possible value is omitted."""
    m, a, b, count = Module(), Signal(name="a"), Signal(name="b"), Signal(range(1), name="count")
    m.d.sync += count.eq(count + 1)
    m.d.comb += b.eq(a & (count == 0))
    written = write_module(Heading("counter"), m, {"a": a, "b": b})
    assert "count <=" not in written.text
    assert "assign b = a;" in written.text
    assert not written.structure.clocked
