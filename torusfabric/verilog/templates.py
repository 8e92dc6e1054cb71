"""Files for users of the Verilog: an instance to copy, and SystemVerilog assertions to bind.

The user is `companion_files`, with the option ``--templates``.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ..contract.assertions import Assertion
from ..contract.interface import Interface
from ..toolchain.quoting import line_comment
from .syntax import range_of

__all__ = ["INSTANCE", "SVA", "instance_text", "sva_text", "template_files"]

#: Names of the two files.
INSTANCE, SVA = "fabric_inst.v", "fabric_sva.sv"


def template_files(manifest: Mapping[str, Any], interface: Interface) -> dict[str, str]:
    """Return the instance to copy and the assertions to bind, each by the name of its file.

    Parameters
    ----------
    manifest : dict
        Contents of ``manifest.json``.
    interface : Interface
        Interface of the fabric, which has assertions about its own ports.
    """
    return {INSTANCE: instance_text(manifest), SVA: sva_text(manifest, interface)}


def instance_text(manifest: Mapping[str, Any]) -> str:
    """Return Verilog to copy: an instance of the fabric, and a wire with a comment for each port.

    `manifest` has the contents of ``manifest.json``, from which names, widths and meanings come.
    """
    ports = manifest["ports"]
    lines = ["// To be copied: nets with the names of the ports, and an instance of the fabric."]
    for name, port in ports.items():
        lines.append(f"wire {range_of(port['width'])}{name}; {line_comment(port['meaning'])}")
    pins = ",\n".join(f"  .{name}({name})" for name in ports)
    return "\n".join([*lines, "", f"{manifest['top']} the_fabric (", pins, ");", ""])


def sva_text(manifest: Mapping[str, Any], interface: Interface) -> str:
    """Return assertions about the ports, in a module that a ``bind`` attaches to the fabric.

    Parameters
    ----------
    manifest : dict
        Contents of ``manifest.json``.
    interface : Interface
        Interface of the fabric, which has assertions about its own ports.
    """
    top, lines = manifest["top"], list[str]()
    if "done" in manifest["ports"] and "start" in manifest["ports"]:
        lines += _forecast_lines(manifest)
    of_environment: list[str] = []
    ports = manifest["ports"]
    for each in (*interface.port_assertions(ports), *_run_port_assertions(ports)):
        text = (
            f"  {each.name}: assert property (@(posedge {each.clock}) "
            f"disable iff ({each.reset}) {each.text});"
        )
        (of_environment if each.environment else lines).append(text)
    if of_environment:
        head = "  generate if (CHECK_ENVIRONMENT) begin : environment"
        lines += [head, *(f"  {text}" for text in of_environment), "  end endgenerate"]
    asked = set(re.findall(r"\w+", "\n".join(lines)))
    ports = {name: port for name, port in manifest["ports"].items() if name in asked}
    heads = ",\n".join(f"  input wire {range_of(p['width'])}{name}" for name, p in ports.items())
    pins = ",\n".join(f"  .{name}({name})" for name in ports)
    return "\n".join([
        "// Rules of the ports, bound to the fabric at the end. Those of what drives it are here",
        "// too, unless CHECK_ENVIRONMENT is 0.",
        f"module {top}_sva #(parameter bit CHECK_ENVIRONMENT = 1) (",
        heads,
        ");",
        *lines,
        "endmodule",
        "",
        f"bind {top} {top}_sva assertions (",
        pins,
        ");",
        "",
    ])  # fmt: skip


def _run_port_assertions(ports: Mapping[str, Any]) -> Iterator[Assertion]:
    """Yield the assertions about the signals ``start``, ``busy``, ``done`` and ``cycles``.

    `ports` has the entries of the manifest for all ports. Assertions about ports that the fabric
    lacks are left out.
    """
    if "start" in ports:
        yield Assertion("busy_or_done", "!(busy && done)")
        yield Assertion("busy_after_start", "$rose(busy) |-> $past(start)")
        yield Assertion("done_after_busy", "$rose(done) |-> $past(busy)")
        exact = "count >= forecast && count <= forecast + held"
        yield Assertion("done_in_the_forecast_cycle", f"$rose(done) |-> {exact}")
        yield Assertion("not_busy_for_longer", "busy |-> count < forecast + held")
        yield Assertion("counts_cycles", "$rose(done) |-> cycles == forecast")
        if "host_we" in ports:
            yield Assertion("no_write_in_a_run", "busy |-> !host_we", environment=True)


def _forecast_lines(manifest: Mapping[str, Any]) -> list[str]:
    """Return the registers that the assertions about the end of a run need, in SystemVerilog.

    There are three registers: ``forecast`` holds the predicted cycles of the run, from `manifest`,
    ``count`` the cycles since its start, and ``held`` the most cycles by which the fabric may delay
    the run because words are still on their way to the memories.
    """
    ports, modes = manifest["ports"], manifest["modes"]
    fixed = "length" not in ports
    width = ports.get("length", {"width": 32})["width"] + 1
    length = f"{width}'({manifest['flits']})" if fixed else f"{width}'(length)"
    lines = ["  reg [31:0] count = 0, forecast = 0, held = 0, quiet = 0;", "  wire [31:0] wanted;"]
    # A run waits for words that are still on their way from the host port to the memories.
    latency = manifest.get("write_latency", 0)
    counted = [f"    quiet <= host_we ? 0 : quiet + (quiet < {latency});"] * bool(latency)
    cases = []
    for mode in modes:
        chunks = mode["chunks"]
        blocks = f"((32'({length}) + {chunks - 1}) / {chunks})"
        text = ""
        for piece in sorted(mode["cycles"], key=lambda piece: -piece["from"]):
            constant = _constant_cycles(piece["constant"])
            cycles = f"({constant} + {piece['per_flit']} * {blocks})"
            text += f"{blocks} >= {piece['from']} ? {cycles} : "
        cases.append(f"({text}32'd0)")
    chosen = cases[-1]
    for number in range(len(cases) - 2, -1, -1):
        chosen = f"(mode == {number} ? {cases[number]} : {chosen})"
    return [
        *lines,
        f"  assign wanted = {chosen};",
        "  always @(posedge clk) begin",
        "    count <= count + 1;",
        *counted,
        "    if (start && !busy) begin",
        "      count <= 0;",
        "      forecast <= wanted;",
        f"      held <= quiet < {latency} ? {latency} : 0;",
        "    end",
        "  end",
    ]


def _constant_cycles(value: Any) -> str:
    """Return a SystemVerilog expression for the constant part of the cycles of a run.

    The cycles are this part, plus a number for each flit of the message. If it depends on the root,
    the expression selects it by the root of the run.

    Parameters
    ----------
    value : int or list of int
        Entry ``constant`` of the manifest: a number, or a list with a number for each root.
    """
    if not isinstance(value, list):
        return f"{value}"
    *others, last = value
    cases = [f"root == {number} ? {each}" for number, each in enumerate(others)]
    return f"({' : '.join([*cases, str(last)])})"
