"""The watch of streams: it names a node for which other nodes have waited too long."""

import re
import subprocess

import pytest
from helpers import simulated
from vectors import needs_icarus

import torusfabric as tf
from torusfabric.verilog.manifest import interface_facts


def watched(network="3", **options):
    program = tf.compile(tf.plan(network, "allgather", flits=2), flits=2)
    return tf.Fabric(program, width=8, top="stream", beat=1, timeout=20, **options)


async def ticks(ctx, fabric, cycles):
    """Return after some cycles the outputs: a node stalls, its number, and whether it fails to
    send.
    """
    await ctx.tick().repeat(cycles)
    return tuple(ctx.get(getattr(fabric, f"stalled{what}")) for what in ("", "_node", "_sends"))


async def send(ctx, fabric, *nodes):
    """Send one message of each given node."""
    for last in (0, 1):
        for node in nodes:
            port = fabric.node[node].send
            ctx.set(port.payload.last, last)
            ctx.set(port.valid, 1)
        await ctx.tick()
    for node in nodes:
        ctx.set(fabric.node[node].send.valid, 0)


def test_who_rests_is_named():
    """The watch names the node that does not send, or does not receive, once others wait for it."""
    fabric = watched()

    async def testbench(ctx):
        await ctx.tick().repeat(20)
        # no node waits, so no node stalls
        assert (await ticks(ctx, fabric, 60))[0] == 0
        await send(ctx, fabric, 0, 1)
        assert (await ticks(ctx, fabric, 15))[0] == 0
        assert (await ticks(ctx, fabric, 30)) == (1, 2, 1)
        # The message of node 2 starts the run. Node 0 then receives; nodes 1 and 2 do not.
        ctx.set(fabric.node[0].receive.ready, 1)
        await send(ctx, fabric, 2)
        assert (await ticks(ctx, fabric, 12))[0] == 0
        # Each node has room for three runs.
        for _ in range(3):
            await send(ctx, fabric, 0, 1, 2)
            shown = await ticks(ctx, fabric, 45)
        assert shown == (1, 1, 0)
        ctx.set(fabric.node[1].receive.ready, 1)
        assert (await ticks(ctx, fabric, 45)) == (1, 2, 0)
        ctx.set(fabric.node[2].receive.ready, 1)
        assert (await ticks(ctx, fabric, 60))[0] == 0

    simulated(fabric, testbench)


def test_a_node_behind_relays_is_named():
    """Nodes 0 and 2 of five only relay, so they are never late; node 3 is named by its number."""
    fabric = watched("5!0=relay,2=relay")

    async def testbench(ctx):
        await ctx.tick().repeat(20)
        await send(ctx, fabric, 1, 4)
        assert (await ticks(ctx, fabric, 60)) == (1, 3, 1)
        for node in (1, 3):
            ctx.set(fabric.node[node].receive.ready, 1)
        for _ in range(4):
            await send(ctx, fabric, 1, 3, 4)
            shown = await ticks(ctx, fabric, 60)
        assert shown == (1, 4, 0)

    simulated(fabric, testbench)


def test_nobody_is_named_while_a_run_is_under_way():
    """During a run no node is named, even if messages wait longer than the timeout."""
    program = tf.compile(tf.plan(tf.Torus(3, link_latency=40), "allgather"), flits=2)
    fabric = tf.Fabric(program, width=8, top="stream", beat=1, timeout=20)

    async def testbench(ctx):
        await ctx.tick().repeat(20)
        for nodes in ((0, 1), (0, 1), (2,)):
            await send(ctx, fabric, *nodes)
        await ctx.tick().until(fabric.busy)
        seen = 0
        while ctx.get(fabric.busy):
            assert (await ticks(ctx, fabric, 1))[0] == 0
            seen += 1
        assert seen > 40
        assert (await ticks(ctx, fabric, 45)) == (1, 2, 1)

    simulated(fabric, testbench)


def test_who_waits_for_statuses_to_be_taken_names_nobody():
    """No node is named while the fabric waits for a receiver of statuses.

    All nodes have sent and received, but no run begins.
    """
    program = tf.compile(tf.plan("3", "allgather"), max_flits=2, barrier=True)
    fabric = tf.Fabric(program, width=8, top="stream", timeout=20)

    async def testbench(ctx):
        for node in fabric.node:
            ctx.set(node.receive.ready, 1)
        ctx.set(fabric.command.payload.last, 1)
        for _ in range(3):
            ctx.set(fabric.command.valid, 1)
            await ctx.tick().until(fabric.command.ready)
            ctx.set(fabric.command.valid, 0)
            await ctx.tick().repeat(10)
            await send(ctx, fabric, 0, 1, 2)
            await ctx.tick().repeat(60)
            assert ctx.get(fabric.stalled) == 0
        assert ctx.get(fabric.status.valid) == 1
        for _ in range(10):
            assert (await ticks(ctx, fabric, 1))[0] == 0

    simulated(fabric, testbench)


BENCH = """\
module tb;
  reg clk = 0, clk_0 = 0, clk_1 = 0, rst = 1;
  reg [15:0] d0 = 0, d1 = 16'h100;
  wire r0, r1, v0, v1, stalled, node, sends, busy;
  integer first, second, given;
  reg takes_0, takes_1;
  wire s0 = d0 < 4 * first, s1 = d1 < 16'h100 + 4 * second;
  fabric dut(
    .clk(clk), .rst(rst), CLOCKS
    .s_axis_0_tdata(d0), .s_axis_0_tvalid(s0 & ~rst), .s_axis_0_tready(r0),
    .s_axis_0_tlast(&d0[1:0]), .s_axis_1_tdata(d1), .s_axis_1_tvalid(s1 & ~rst),
    .s_axis_1_tready(r1), .s_axis_1_tlast(&d1[1:0]),
    .m_axis_0_tready(takes_0), .m_axis_1_tready(takes_1), .m_axis_0_tvalid(v0),
    .m_axis_1_tvalid(v1), .stalled(stalled), .stalled_node(node), .stalled_sends(sends),
    .busy(busy));
  always #5 clk = ~clk;
  always #4 clk_0 = ~clk_0;
  always #7 clk_1 = ~clk_1;
  always @(posedge SEND0) if (~rst & s0 & r0) d0 <= d0 + 1;
  always @(posedge SEND1) if (~rst & s1 & r1) d1 <= d1 + 1;
  initial begin
    given = $value$plusargs("first=%d", first) & $value$plusargs("second=%d", second)
      & $value$plusargs("takes_0=%b", takes_0) & $value$plusargs("takes_1=%b", takes_1);
    #200 @(negedge clk) rst = 0;
    #10000 $display("%b %b %b", stalled, node, sends);
    $finish;
  end
endmodule
"""


@pytest.fixture(scope="module", params=["one", "per-node"])
def simulator(request, tmp_path_factory):
    """The compiled bench of a fabric of two nodes; its settings are given at each run."""
    folder, apart = tmp_path_factory.mktemp("watch"), request.param == "per-node"
    program = tf.compile(tf.plan("2", "allgather"), flits=4)
    fabric = tf.Fabric(program, width=16, top="stream", beat=1, timeout=40, clocks=request.param)
    pins = ".clk_0(clk_0), .clk_1(clk_1), .rst_0(rst), .rst_1(rst)," if apart else ""
    text = BENCH.replace("CLOCKS", pins)
    for node in range(2):
        text = text.replace(f"SEND{node}", f"clk_{node}" if apart else "clk")
    text = tf.emit(fabric).text.replace("`default_nettype none", "") + text
    (folder / "tb.v").write_text(text)
    command = ["iverilog", "-g2005", "-s", "tb", "-o", "tb.vvp", "tb.v"]
    subprocess.run(command, cwd=folder, check=True)
    return folder / "tb.vvp"


@needs_icarus
@pytest.mark.parametrize(
    ("sent", "takes", "shown"),
    [((runs, runs), (1, 0), "1 1 0") for runs in range(1, 8)]
    + [((runs, runs), (1, 1), "0 . .") for runs in (0, 1, 3)]
    + [((2, 2), (0, 1), "1 0 0"), ((3, 3), (0, 0), "1 0 0")]
    + [((2, 1), (1, 1), "1 1 1"), ((0, 1), (1, 1), "1 0 1"), ((1, 3), (1, 1), "1 0 1")]
    # Node 1 has room for the next run, so only the missing sender delays it.
    + [((2, 1), (1, 0), "1 1 1"), ((1, 2), (1, 0), "1 0 1")],
)
def test_only_who_holds_up_is_named(sent, takes, shown, simulator):
    """Only the node that delays the others is named, for several numbers of sent messages."""
    names = ("first", "second", "takes_0", "takes_1")
    given = [f"+{name}={value}" for name, value in zip(names, sent + takes, strict=True)]
    said = subprocess.run(["vvp", "-n", simulator, *given], capture_output=True, text=True)
    assert re.match(shown, said.stdout), said.stdout


@pytest.mark.parametrize("collective", ["broadcast", "gather"])
def test_who_has_nothing_to_send_is_not_named(collective):
    """In an idle fabric no node is named, nor is a receiver that slowly accepts its words."""
    program = tf.compile(tf.plan("3", collective), flits=2)
    fabric = tf.Fabric(program, width=8, top="stream", beat=1, timeout=20)

    async def testbench(ctx):
        assert (await ticks(ctx, fabric, 100))[0] == 0
        await send(ctx, fabric, *(range(3) if collective == "gather" else [0]))
        for step in range(200):
            for node in fabric.node:
                ctx.set(node.receive.ready, step % 15 == 0)
            assert (await ticks(ctx, fabric, 1))[0] == 0

    simulated(fabric, testbench)


def test_a_command_asks_for_its_run():
    """Without a command no sender is named.

    With a command, the root that does not send is named.
    """
    program = tf.compile(tf.plan("3", "broadcast"), max_flits=2, root="any")
    fabric = tf.Fabric(program, width=8, top="stream", beat=1, timeout=20)

    async def testbench(ctx):
        ctx.set(fabric.status.ready, 1)
        assert (await ticks(ctx, fabric, 100))[0] == 0
        for root in (1, 2):
            for word in (0, 2, root, 0, 7):
                ctx.set(fabric.command.payload.data, word)
                ctx.set(fabric.command.payload.last, word == 7)
                ctx.set(fabric.command.valid, 1)
                await ctx.tick().until(fabric.command.ready)
            ctx.set(fabric.command.valid, 0)
            assert (await ticks(ctx, fabric, 15))[0] == 0
            assert (await ticks(ctx, fabric, 40)) == (1, root, 1)
            await send(ctx, fabric, root)
            # no node receives its words, and node 0 is the first of them
            assert (await ticks(ctx, fabric, 80)) == (1, 0, 0)
        for node in fabric.node:
            ctx.set(node.receive.ready, 1)
        assert (await ticks(ctx, fabric, 100))[0] == 0

    simulated(fabric, testbench)


def test_without_a_timeout_there_is_no_watch():
    """A fabric without a timeout has no watch, and a timeout needs a stream top."""
    program = tf.compile(tf.plan("2", "allgather"), flits=1)
    assert "stalled" not in tf.Fabric(program, width=8, top="stream").netlist.outputs
    with pytest.raises(tf.InputError, match="Top must be stream for a timeout of nodes, not host"):
        tf.Fabric(program, width=8, timeout=5)


def test_a_register_names_it():
    """A register of the bus has the number of the named node."""
    bus = interface_facts(watched(bus="wishbone"))["bus"]
    assert bus["registers"]["stalled"]["fields"]["node"]["width"] == 2
