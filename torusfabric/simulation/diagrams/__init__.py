"""Timing diagrams of a fabric, drawn from a simulation of it."""

from collections.abc import Callable

from amaranth.sim import Simulator, SimulatorContext

from ...rtl.assembly import Assembly
from ...rtl.fabric import Fabric, Top
from ...rtl.streams import Clocks
from ...verilog.diagram import Diagram
from ..engines.amaranth_engine import wide_values
from .bus import bus_scene
from .host import host_scene, memories_scene, scheduled_scene
from .stage import Scene, Sketch, Stage, Watched
from .stream import stream_scene
from .waves import Line, waves

__all__ = ["draw_diagrams"]

#: Ports whose values are numbers of something.
DECIMAL = ("mode", "length", "root", "operation", "round", "cycles", "error")


def draw_diagrams(fabric: Fabric) -> list[Diagram]:
    """What happens at the ports of a fabric in a run of its first mode.

    Returns
    -------
    list of Diagram
        None where nodes have clocks of their own, or streams and the fabric a bus.

    Examples
    --------
    >>> import torusfabric as tf
    >>> fabric = tf.Fabric(tf.compile(tf.plan("2x2", "allgather")), width=8)
    >>> write, run, read = draw_diagrams(fabric)
    >>> run.waves["signal"][2]
    {'name': 'start', 'wave': '10...|...'}
    """
    if fabric.clocks is not Clocks.ONE or (fabric.bus and fabric.top is Top.STREAM):
        return []  # a diagram shows the cycles of one clock, and those of one interface
    scene, design = _scene(fabric)(fabric), Assembly(fabric.netlist)
    watched = dict.fromkeys(each for sketch in scene.sketches for each in sketch.watched)
    stages = []

    async def testbench(ctx: SimulatorContext) -> None:
        stages.append(stage := Stage(ctx, design, watched))
        await scene.play(stage)

    with wide_values():
        simulator = Simulator(design)
        simulator.add_clock(1e-8)
        simulator.add_testbench(testbench)
        simulator.run()
    (stage,) = stages
    return [_diagram(fabric, sketch, stage) for sketch in scene.sketches]


def _scene(fabric: Fabric) -> Callable[[Fabric], Scene]:
    """What is shown of the top of a fabric."""
    if fabric.bus:
        return bus_scene
    if fabric.top is Top.STREAM:
        return stream_scene
    if fabric.top is Top.CORE:
        return scheduled_scene if fabric.streaming else memories_scene
    return host_scene


def _diagram(fabric: Fabric, sketch: Sketch, stage: Stage) -> Diagram:
    """A diagram of what was written down."""
    widths = fabric.netlist.inputs | fabric.netlist.outputs
    first, end = stage.cycles[sketch.name]
    lines = [
        _line(each, widths[each.port], stage.shown[each][first:end]) for each in sketch.watched
    ]
    drawn = waves(range(first - stage.origin, end - stage.origin), lines)
    return Diagram(sketch.name, sketch.title, sketch.meaning, drawn)


def _line(watched: Watched, width: int, values: list[int]) -> Line:
    """The line of a port of some width, or of some of its bits."""
    bits = width - watched.low if watched.width is None else watched.width
    high, name = watched.low + bits - 1, watched.port
    if bits < width:
        name += f"[{high}:{watched.low}]" if bits > 1 else f"[{high}]"
    return Line(name, bits, values, decimal=watched.port in DECIMAL, counts=watched.counts)
