"""Small hand-written designs, whose costs are known by construction."""

import dataclasses

from torusfabric.verilog.design import Design, RouterClass, RouterShape

PORTS = 4


def router(width, *, extra=""):
    """Return a plain router: each out-port forwards an in-port or injects, in the same cycle."""
    ports = range(PORTS)
    lines = [
        "module router(input clk, input inject",
        f"  , input [{width - 1}:0] own",
        *(f"  , input [{width - 1}:0] in_{p}" for p in ports),
        *(f"  , output reg [{width - 1}:0] out_{p}" for p in ports),
        ");",
        "  always @(posedge clk) begin",
        *(f"    out_{p} <= inject ? own : in_{(p + 1) % PORTS};" for p in ports),
        "  end",
        extra,
        "endmodule",
    ]
    return "\n".join(lines) + "\n"


def ring(width, nodes):
    """Return a ring of nodes on every port; outputs of the last node are outputs of the top."""
    bits = PORTS * width
    lines = [f"module fabric(input clk, input [{nodes - 1}:0] inject, input [{width - 1}:0] own"]
    lines += [f"  , output [{bits - 1}:0] seen);"]
    lines += [f"  wire [{bits - 1}:0] tx_{n};" for n in range(nodes)]
    for n in range(nodes):
        wires = [f".clk(clk), .inject(inject[{n}]), .own(own)"]
        for p in range(PORTS):
            part = f"[{p * width + width - 1}:{p * width}]"
            wires += [f".in_{p}(tx_{(n - 1) % nodes}{part}), .out_{p}(tx_{n}{part})"]
        lines += [f"  router node_{n} ({', '.join(wires)});"]
    return "\n".join([*lines, f"  assign seen = tx_{nodes - 1};", "endmodule"]) + "\n"


def design(width=8, nodes=4, *, extra=""):
    """Return a fabric with one class of routers."""
    return Design(
        modules={"router": router(width, extra=extra), "fabric": ring(width, nodes)},
        top="fabric",
        instances={"fabric": {"router": nodes}},
        classes={"router": RouterClass(nodes, outports=tuple(f"out_{p}" for p in range(PORTS)))},
    )


#: A block RAM of 256 x 16 bits, an adder of 8 bits, and output registers.
STORE = """
module store(input clk, input we, input [7:0] wa, input [7:0] ra, input [15:0] d,
             output reg [15:0] q, output reg [7:0] sum);
  (* no_rw_check *) reg [15:0] memory [0:255];
  always @(posedge clk) begin
    if (we) memory[wa] <= d;
    q <= memory[ra];
    sum <= wa + ra;
  end
endmodule
"""

#: A memory of 16 x 8 bits with asynchronous read.
SMALL_STORE = """
module small_store(input clk, input we, input [3:0] wa, input [3:0] ra, input [7:0] d,
                   output [7:0] q);
  (* ram_style = "distributed" *) reg [7:0] memory [0:15];
  always @(posedge clk) if (we) memory[wa] <= d;
  assign q = memory[ra];
endmodule
"""

OUTER = """
module outer(input clk, input we, input [15:0] d, output [15:0] q);
  wire [15:0] a, b;
  store s0 (.clk(clk), .we(we), .wa(d[7:0]), .ra(d[15:8]), .d(d), .q(a), .sum());
  store s1 (.clk(clk), .we(we), .wa(d[7:0]), .ra(d[15:8]), .d(a), .q(b), .sum());
  assign q = b;
endmodule
"""

SHAPE = RouterShape(ports=PORTS, own_words=1, width=8, settings=4)


def described(width=8):
    """Return the fabric of `design` with all facts that the report can use."""
    plain = design(width, 4)
    inports = {f"in_{p}": "crossbar" for p in range(PORTS)} | {"own": "injection"}
    routers = dataclasses.replace(plain.classes["router"], inports=inports, shape=SHAPE)
    return dataclasses.replace(plain, classes={"router": routers}, parts={"fabric": "other"})
