"""What is shown of a core, whose nodes have ports of their own."""

from ...program.timing import SETTING
from ...rtl.fabric import Fabric
from ..engines.base import PATIENCE
from .host import run_sketch
from .sample import FIRST, Sample, sample
from .stage import Lane, Scene, Sketch, Stage

__all__ = ["memories_scene", "scheduled_scene"]


def memories_scene(fabric: Fabric) -> Scene:
    """Words are written at a node, a run, words are read at another."""
    shown, places = sample(fabric), fabric.address_map()

    def place(which: str, node: int, part: int, flit: int) -> tuple[int, int]:
        chunk, within = divmod(flit, fabric.program.block_flits)
        layout = fabric.program.layout
        bank, base = places[which][node][part * layout.part_chunks + chunk]
        return bank, base + within

    async def play(stage: Stage) -> None:
        source, reader = shown.source, shown.reader
        stage.begin("write")
        await stage.edges()
        stage.set(**{f"write_enable_{source}": 1})
        for (part, flit), word in zip(shown.sent, shown.words, strict=True):
            bank, address = place("sent", source, part, flit)
            stage.set(**{f"write_bank_{source}": bank, f"write_address_{source}": address,
                         f"write_data_{source}": word})  # fmt: skip
            await stage.edges()
        stage.set(**{f"write_enable_{source}": 0})
        await stage.edges()
        stage.end("write")
        await _run(stage, fabric, shown)
        stage.begin("read")
        for part, flit in shown.received:
            bank, address = place("received", reader, part, flit)
            stage.set(**{f"read_bank_{reader}": bank, f"read_address_{reader}": address})
            await stage.edges()
        await stage.edges(fabric.read_latency)
        stage.end("read")

    return Scene(play, [_write_sketch(fabric, shown), run_sketch(fabric), _read_sketch(shown)])


def _write_sketch(fabric: Fabric, shown: Sample) -> Sketch:
    names = (f"{name}_{shown.source}" for name in ("write_enable", "write_bank", "write_address",
                                                   "write_data"))  # fmt: skip
    return Sketch(
        "write",
        "Writing words",
        f"The first words of what node {shown.source} sends are written, one an edge.",
        tuple(Lane(name) for name in names if name in fabric.netlist.inputs),
    )


def _read_sketch(shown: Sample) -> Sketch:
    names = ("read_bank", "read_address", "read_data")
    return Sketch(
        "read",
        "Reading words",
        f"Node {shown.reader} has received them.",
        tuple(Lane(f"{name}_{shown.reader}") for name in names),
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
        Lane("tx_address"),
        *(Lane("inject_0", low, width) for low in range(0, bits, width)),
        Lane("rx_enable"),
        Lane("rx_address", counts=True),
        *(Lane(f"receive_{reader}", low, width, counts=True) for low in received),
    )
    meaning = (
        f"{sketch.meaning} Node 0 injects flit 0 of each chunk in cycle {wait + SETTING}, after "
        f"`tx_address` has shown its number; all other nodes inject 0. Node {reader} receives the "
        "words by the ports and in the steps of the schedule."
    )
    return Scene(play, [sketch._replace(meaning=meaning)])


async def _run(stage: Stage, fabric: Fabric, shown: Sample) -> None:
    """A run."""
    await stage.edges()
    stage.begin("run")
    stage.set(start=1, **shown.job.inputs)
    await stage.edges()
    stage.set(start=0, **dict.fromkeys(shown.job.inputs, 0))
    stage.origin = stage.now
    limit = fabric.predicted_cycles + PATIENCE
    await stage.until(lambda: bool(stage.get("done")), limit=limit)
    await stage.edges(2)
    stage.end("run")
