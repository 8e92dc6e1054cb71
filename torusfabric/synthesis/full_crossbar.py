"""What a router would cost that could send any input to any out-port: the yardstick of a report.

It has the ports, lanes, width and number of settings of the router that it is compared with, is
made of the same cascades (see `torusfabric.rtl.crossbar`; the cheapest form that we know, if
synthesis is kept from seeing through it), and its settings are chosen at random, for a crossbar
that serves any program cannot count on their order. So what is saved against it is saved by the
schedule, and by nothing else.
"""

import random

from ..verilog_design import Design

__all__ = ["full_crossbar", "select_bits"]


def full_crossbar(shape):
    """A full crossbar with its settings.

    Parameters
    ----------
    shape : RouterShape

    Returns
    -------
    Design
        Of up to two modules that are not put together, so that synthesis cannot take away inputs
        which no setting happens to use.
    """
    inputs = shape.ports + shape.lanes
    bits = len(select_bits(inputs, 0))
    modules = {"crossbar": _crossbar(shape, inputs, bits)}
    if shape.settings and bits:
        modules["settings"] = _settings(shape, inputs, bits)
    return Design(modules, "crossbar", {})


def select_bits(inputs, source):
    """The select bits y, x, z1, z2, .. that make a cascade pass one of its inputs."""
    if inputs == 1:
        return []
    first = [source % 2] + [int(source >= 2)] * (inputs >= 4)
    return first + [int(source // 2 == stage) for stage in range(1, (inputs + 1) // 2)]


def _crossbar(shape, inputs, bits):
    """A cascade over all inputs for each out-port; the selects come from registers outside."""
    width = shape.width
    words = [f"rx[{k * width} +: {width}]" for k in range(shape.ports)]
    words += [f"inject[{k * width} +: {width}]" for k in range(shape.lanes)]
    lines = [
        "module crossbar(input clk, input enable,",
        f"    input [{max(bits * shape.ports, 1) - 1}:0] select,",
        f"    input [{shape.ports * width - 1}:0] rx, input [{shape.lanes * width - 1}:0] inject,",
        f"    output reg [{shape.ports * width - 1}:0] tx);",
    ]
    for port in range(shape.ports):
        chain = [f"select[{port * bits + k}]" for k in range(bits)]
        last = _cascade(lines, f"f{port}", words, chain, width)
        lines.append(
            f"  always @(posedge clk) if (enable) tx[{port * width} +: {width}] <= {last};"
        )
    return "\n".join([*lines, "endmodule\n"])


def _cascade(lines, name, words, chain, width):
    """Declare the stages of a cascade; returns its last one."""
    y, *chain = chain
    first = f"{y} ? {words[1]} : {words[0]}"
    if len(words) >= 4:
        x, *chain = chain
        first = f"{x} ? {{{width}{{{y}}}}} : ({first})"
    lines.append(f"  (* keep *) wire [{width - 1}:0] {name}_0 = {first};")
    pairs = zip(chain, words[2::2], [*words[3::2], None], strict=False)
    stage = 0
    for stage, (z, even, odd) in enumerate(pairs, start=1):
        f = f"{name}_{stage - 1}"
        chosen = f"(({f} & {odd}) | (~{f} & {even}))" if odd else even
        lines.append(f"  (* keep *) wire [{width - 1}:0] {name}_{stage} = {z} ? {chosen} : {f};")
    return f"{name}_{stage}"


def _settings(shape, inputs, bits):
    """A registered ROM of random settings."""
    chance = random.Random(0)
    size, rows = bits * shape.ports, shape.settings
    address = max((rows - 1).bit_length(), 1)
    lines = [
        f"module settings(input clk, input [{address - 1}:0] setting,",
        f"    output reg [{size - 1}:0] select);",
        "  always @(posedge clk) case (setting)",
    ]
    for row in range(rows):
        sources = [chance.randrange(inputs) for _ in range(shape.ports)]
        values = [bit for s in sources for bit in select_bits(inputs, s)]
        text = "".join(map(str, reversed(values)))
        label = "default" if row == rows - 1 else f"{address}'d{row}"
        lines.append(f"    {label}: select <= {size}'b{text};")
    return "\n".join([*lines, "  endcase", "endmodule\n"])
