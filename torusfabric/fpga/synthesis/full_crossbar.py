"""What a router would cost that could send any input to any out-port: the yardstick of a report.

It has the in-ports, words of the node, width and number of settings of the router that it is
compared with. If it had one word of the node for each out-port alone, that would have to be chosen
in front of it, with more tables in all. It is made of the same cascades as the router (see
`torusfabric.rtl.multiplexer`), the cheapest form that we know. Each stage is a module, so that
synthesis cannot see through a cascade and build a costlier tree. Its settings are chosen at random,
for a crossbar that serves any program cannot count on their order. So what is saved against it is
saved by the schedule, and by nothing else.
"""

import random

from ...verilog.design import Design, RouterShape

__all__ = ["full_crossbar", "select_bits"]

_STAGE = """\
module {name}(input {selects}, input [{high}:0] {words}, output [{high}:0] q);
  assign q = {value};
endmodule
"""


def full_crossbar(shape: RouterShape) -> Design:
    """A full crossbar, of the top ``full``, with its settings; without any, selects are inputs."""
    inputs = shape.ports + shape.own_words
    modules = {name: _stage(name, inputs, shape.width) for name in ("first", "pair", "single")}
    counts = {"first": 1, "pair": inputs // 2 - 1, "single": inputs % 2}
    used = {name: count * shape.ports for name, count in counts.items() if count}
    if shape.settings:
        modules["settings"], used["settings"] = _settings(shape, inputs), 1
    modules = {name: modules[name] for name in used}
    return Design(modules | {"full": _top(shape, inputs)}, "full", {"full": used})


def select_bits(inputs: int, source: int) -> list[int]:
    """The select bits y, x, z1, z2, .. that make a cascade pass one of at least two inputs."""
    first = [source % 2] + [int(source >= 2)] * (inputs >= 4)
    return first + [int(source // 2 == stage) for stage in range(1, (inputs + 1) // 2)]


def _stage(name: str, inputs: int, width: int) -> str:
    """A stage of a cascade."""
    first = "y ? b : a"
    bypass = f"x ? {{{width}{{y}}}} : ({first})"
    selects, words, value = {
        "first": ("y, input x", "a, b", bypass) if inputs >= 4 else ("y", "a, b", first),
        "pair": ("z", "f, a, b", "z ? ((f & b) | (~f & a)) : f"),
        "single": ("z", "f, a", "z ? a : f"),
    }[name]
    ports = words.replace(", ", f", input [{width - 1}:0] ")
    return _STAGE.format(name=name, selects=selects, high=width - 1, words=ports, value=value)


def _top(shape: RouterShape, inputs: int) -> str:
    """A cascade over all inputs for each out-port, with a register behind it."""
    width, bits = shape.width, len(select_bits(inputs, 0))
    words = [f"rx[{k * width} +: {width}]" for k in range(shape.ports)]
    words += [f"inject[{k * width} +: {width}]" for k in range(shape.own_words)]
    address = _address(shape) if shape.settings else bits * shape.ports
    given = "setting" if shape.settings else "select"
    lines = [
        f"module full(input clk, input enable, input [{address - 1}:0] {given},",
        f"    input [{shape.ports * width - 1}:0] rx,",
        f"    input [{shape.own_words * width - 1}:0] inject,",
        f"    output reg [{shape.ports * width - 1}:0] tx);",
    ]
    if shape.settings:
        lines.append(f"  wire [{bits * shape.ports - 1}:0] select;")
        lines.append("  settings rom (.clk(clk), .setting(setting), .select(select));")
    for port in range(shape.ports):
        chain = [f"select[{port * bits + k}]" for k in range(bits)]
        last = _cascade(lines, port, words, chain, width)
        lines.append(
            f"  always @(posedge clk) if (enable) tx[{port * width} +: {width}] <= {last};"
        )
    return "\n".join([*lines, "endmodule\n"])


def _cascade(lines: list[str], port: int, words: list[str], chain: list[str], width: int) -> str:
    """Add the stages of a cascade; returns the name of the last one's output."""
    y, *chain = chain
    pins = f".y({y}), .a({words[0]}), .b({words[1]})"
    if len(words) >= 4:
        x, *chain = chain
        pins += f", .x({x})"
    f = f"f_{port}_0"
    pairs = zip(chain, words[2::2], [*words[3::2], None], strict=False)
    wire = f"  wire [{width - 1}:0] "
    lines += [f"{wire}{f};", f"  first stage_{port}_0 ({pins}, .q({f}));"]
    for stage, (z, even, odd) in enumerate(pairs, start=1):
        kind, pins = "single", f".z({z}), .f({f}), .a({even})"
        if odd:
            kind, pins = "pair", f"{pins}, .b({odd})"
        f = f"f_{port}_{stage}"
        lines += [f"{wire}{f};", f"  {kind} stage_{port}_{stage} ({pins}, .q({f}));"]
    return f


def _address(shape: RouterShape) -> int:
    return max((shape.settings - 1).bit_length(), 1)


def _settings(shape: RouterShape, inputs: int) -> str:
    """A registered ROM of random settings."""
    chance = random.Random(0)
    rows, address = shape.settings, _address(shape)
    size = len(select_bits(inputs, 0)) * shape.ports
    lines = [
        f"module settings(input clk, input [{address - 1}:0] setting,",
        f"    output reg [{size - 1}:0] select);",
        "  always @(posedge clk) case (setting)",
    ]
    for row in range(rows):
        sources = [chance.randrange(inputs) for _ in range(shape.ports)]
        values = [bit for source in sources for bit in select_bits(inputs, source)]
        text = "".join(map(str, reversed(values)))
        label = "default" if row == rows - 1 else f"{address}'d{row}"
        lines.append(f"    {label}: select <= {size}'b{text};")
    return "\n".join([*lines, "  endcase", "endmodule\n"])
