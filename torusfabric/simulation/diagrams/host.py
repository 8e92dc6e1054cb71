"""What is shown of a fabric whose memories are written and read by a host port, and of a core."""

from collections.abc import Callable
from typing import TypeAlias

from ...program.timing import SETTING
from ...rtl.fabric import Fabric
from ..engines.base import PATIENCE
from .stage import FIRST, Sample, Scene, Sketch, Stage, Watched, sample

__all__ = [
    "CHOICES",
    "accessed_scene",
    "host_scene",
    "memories_scene",
    "run_sketch",
    "scheduled_scene",
]

#: What is chosen at the start of a run.
CHOICES = ("mode", "length", "root", "operation")

#: What may change with every edge of a run.
COUNTS = ("round", "cycles")


#: The inputs for a word but the word itself, given its part and number.
Access: TypeAlias = Callable[[int, int], dict[str, int]]


def host_scene(fabric: Fabric) -> Scene:
    """What is shown of a fabric behind its host port."""
    shown, layout = sample(fabric), fabric.layouts[0]

    def at(node: int, base: int, part: int, beat: int) -> dict[str, int]:
        return {"host_node": node, "host_addr": base + part * layout.flits + beat}

    scene = accessed_scene(
        fabric,
        lambda part, beat: at(shown.source, layout.send_base, part, beat),
        lambda part, beat: at(shown.reader, layout.recv_base, part, beat),
        ["host_we", "host_node", "host_addr", "host_wdata"],
        ["host_node", "host_addr", "host_rdata"],
    )
    after = f" A word is on `host_rdata` {fabric.read_latency} edges after its address."
    read = scene.sketches[-1]
    scene.sketches[-1] = read._replace(meaning=read.meaning + after)
    return scene


def accessed_scene(
    fabric: Fabric, write: Access, read: Access, written: list[str], found: list[str]
) -> Scene:
    """Words are written at a node, a run, words are read at another.

    Parameters
    ----------
    written, found : list of str
        The ports of the diagrams; of writes, what enables them first, and the word last.
    """
    shown = sample(fabric)
    enable, data = written[0], written[-1]

    async def play(stage: Stage) -> None:
        stage.begin("write")
        await stage.edges()
        for place, word in zip(shown.sent, shown.words, strict=True):
            stage.set(**{enable: 1, data: word}, **write(*place))
            await stage.edges()
        stage.set(**{enable: 0})
        await stage.edges()
        stage.end("write")
        await _run(stage, fabric, shown)
        stage.begin("read")
        for place in shown.received:
            stage.set(**read(*place))
            await stage.edges()
        await stage.edges(fabric.read_latency)
        stage.end("read")

    there = fabric.netlist.inputs | fabric.netlist.outputs
    writing, reading = (
        tuple(Watched(name) for name in names if name in there) for names in (written, found)
    )
    sent = f"The first words of what node {shown.source} sends are written, one an edge."
    received = f"Node {shown.reader} has received them."
    return Scene(
        play,
        [
            Sketch("write", "Writing words", sent, writing),
            run_sketch(fabric),
            Sketch("read", "Reading words", received, reading),
        ],
    )


async def _run(stage: Stage, fabric: Fabric, shown: Sample) -> None:
    """A run."""
    await stage.edges()
    stage.begin("run")
    stage.set(start=1, **shown.job.inputs)
    await stage.edges()
    stage.set(start=0, **dict.fromkeys(shown.job.inputs, 0))
    stage.origin = stage.now
    limit = fabric.program.cycles(shown.job.length, mode=shown.job.mode) + PATIENCE
    await stage.until(lambda: bool(stage.get("done")), limit=limit)
    await stage.edges(2)
    stage.end("run")


def run_sketch(fabric: Fabric, *watched: Watched) -> Sketch:
    """The diagram of a run that a pulse starts, with further lines."""
    ports = fabric.netlist.inputs | fabric.netlist.outputs
    names = ("start", *CHOICES, "busy", "done", "error", "round", "cycles")
    there = tuple(Watched(name, counts=name in COUNTS) for name in names if name in ports)
    return Sketch(
        "run", "A run", "Cycle 0 follows the edge that takes `start`.", (*there, *watched)
    )


def memories_scene(fabric: Fabric) -> Scene:
    """Words are written at a node, a run, words are read at another."""
    shown, places, layout = sample(fabric), fabric.address_map(), fabric.program.layout

    def at(node: int, what: str, verb: str, part: int, beat: int) -> dict[str, int]:
        chunk, within = divmod(beat * fabric.beat, fabric.program.block_flits)
        bank, base = places[what][node][part * layout.part_chunks + chunk]
        return {f"{verb}_bank_{node}": bank, f"{verb}_address_{node}": base + within}

    source, reader = shown.source, shown.reader
    return accessed_scene(
        fabric,
        lambda part, beat: at(source, "sent", "write", part, beat),
        lambda part, beat: at(reader, "received", "read", part, beat),
        [f"write_{name}_{source}" for name in ("enable", "bank", "address", "data")],
        [f"read_{name}_{reader}" for name in ("bank", "address", "data")],
    )


def scheduled_scene(fabric: Fabric) -> Scene:
    """A run, in which node 0 injects words, and a neighbour receives them."""
    program, width = fabric.program, fabric.width
    bits, wait = fabric.netlist.inputs["inject_0"], program.timing.wait
    steps, reader = program.schedule.round_count, int(program.topology.neighbours[0, 0])

    def injected(flit: int) -> int:
        """A flit of each chunk, side by side."""
        words = (FIRST + program.block_flits * chunk + flit for chunk in range(bits // width))
        return sum(word % (1 << width) << width * chunk for chunk, word in enumerate(words))

    async def play(stage: Stage) -> None:
        await stage.edges()
        stage.begin("run")
        stage.set(start=1)
        await stage.edges()
        stage.set(start=0)
        stage.origin = stage.now
        for cycle in range(fabric.predicted_cycles + 2):
            flit, rest = divmod(cycle - wait - SETTING, steps)
            if not rest and 0 <= flit < program.block_flits:
                stage.set(inject_0=injected(flit))
            await stage.edges()
        stage.end("run")

    received = range(0, fabric.netlist.outputs[f"receive_{reader}"], width)
    sketch = run_sketch(
        fabric,
        Watched("tx_address"),
        *(Watched("inject_0", low, width) for low in range(0, bits, width)),
        Watched("rx_enable"),
        Watched("rx_address", counts=True),
        *(Watched(f"receive_{reader}", low, width, counts=True) for low in received),
    )
    meaning = (
        f"{sketch.meaning} Node 0 injects flit 0 of each chunk in cycle {wait + SETTING}, after "
        f"`tx_address` has shown its number; all other nodes inject 0. Node {reader} receives the "
        "words by the ports and in the steps of the schedule."
    )
    return Scene(play, [sketch._replace(meaning=meaning)])
