"""What is shown of a fabric behind its host port."""

from ...rtl.fabric import Fabric
from ..engines.base import PATIENCE
from .sample import Sample, sample
from .stage import Lane, Scene, Sketch, Stage

__all__ = ["CHOICES", "host_scene", "run_sketch"]

#: What is chosen at the start of a run.
CHOICES = ("mode", "length", "root", "operation")

#: What may change with every edge of a run.
COUNTS = ("round", "cycles")


def host_scene(fabric: Fabric) -> Scene:
    """Words are written, a run, words are read."""
    shown = sample(fabric)

    async def play(stage: Stage) -> None:
        await _write(stage, fabric, shown)
        await stage.edges()
        stage.begin("run")
        stage.set(start=1, **shown.job.inputs)
        await stage.edges()
        stage.origin = stage.now
        stage.set(start=0, **dict.fromkeys(shown.job.inputs, 0))
        limit = fabric.program.cycles(shown.job.length, mode=shown.job.mode) + PATIENCE
        await stage.until(lambda: bool(stage.get("done")), limit=limit)
        await stage.edges(2)
        stage.end("run")
        await _read(stage, fabric, shown)

    return Scene(play, [_write_sketch(shown), run_sketch(fabric), _read_sketch(fabric, shown)])


def run_sketch(fabric: Fabric, *lanes: Lane) -> Sketch:
    """The diagram of a run that a pulse starts, with further lines."""
    ports = fabric.netlist.inputs | fabric.netlist.outputs
    names = ("start", *CHOICES, "busy", "done", "error", "round", "cycles")
    there = tuple(Lane(name, counts=name in COUNTS) for name in names if name in ports)
    return Sketch("run", "A run", "Cycle 0 follows the edge that takes `start`.", (*there, *lanes))


def _write_sketch(shown: Sample) -> Sketch:
    return Sketch(
        "write",
        "Writing words",
        f"The first words of what node {shown.source} sends are written, one an edge.",
        tuple(map(Lane, ("host_we", "host_node", "host_addr", "host_wdata"))),
    )


def _read_sketch(fabric: Fabric, shown: Sample) -> Sketch:
    return Sketch(
        "read",
        "Reading words",
        f"Node {shown.reader} has received them. A word is on `host_rdata` {fabric.read_latency} "
        "edges after its address.",
        tuple(map(Lane, ("host_node", "host_addr", "host_rdata"))),
    )


async def _write(stage: Stage, fabric: Fabric, shown: Sample) -> None:
    """Write the words."""
    layout = fabric.layouts[0]
    stage.begin("write")
    await stage.edges()
    stage.set(host_we=1, host_node=shown.source)
    for (part, flit), word in zip(shown.sent, shown.words, strict=True):
        address = layout.send_base + part * fabric.flits + flit
        stage.set(host_addr=address, host_wdata=word)
        await stage.edges()
    stage.set(host_we=0)
    await stage.edges()
    stage.end("write")


async def _read(stage: Stage, fabric: Fabric, shown: Sample) -> None:
    """Read the words."""
    layout = fabric.layouts[0]
    stage.begin("read")
    stage.set(host_node=shown.reader)
    for part, flit in shown.received:
        stage.set(host_addr=layout.recv_base + part * fabric.flits + flit)
        await stage.edges()
    await stage.edges(fabric.read_latency)
    stage.end("read")
