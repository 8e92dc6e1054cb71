"""What is shown of a core, whose nodes have ports of their own."""

from ...program.timing import SETTING
from ...rtl.fabric import Fabric
from .host import Access, accessed_scene, run_sketch
from .sample import FIRST, sample
from .stage import Scene, Stage, Watched

__all__ = ["memories_scene", "scheduled_scene"]


def memories_scene(fabric: Fabric) -> Scene:
    """Words are written at a node, a run, words are read at another."""
    shown, places, layout = sample(fabric), fabric.address_map(), fabric.program.layout

    def at(node: int, what: str, verb: str, part: int, beat: int) -> dict[str, int]:
        chunk, within = divmod(beat * fabric.beat, fabric.program.block_flits)
        bank, base = places[what][node][part * layout.part_chunks + chunk]
        return {f"{verb}_bank_{node}": bank, f"{verb}_address_{node}": base + within}

    source, reader = shown.source, shown.reader
    write = (f"write_{name}_{source}" for name in ("enable", "bank", "address", "data"))
    access = Access(
        f"write_enable_{source}",
        lambda part, beat: at(source, "sent", "write", part, beat),
        lambda part, beat: at(reader, "received", "read", part, beat),
        f"write_data_{source}",
        tuple(write),
        tuple(f"read_{name}_{reader}" for name in ("bank", "address", "data")),
    )
    return accessed_scene(fabric, access)


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
