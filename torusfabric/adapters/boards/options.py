"""Command-line options of fabrics on several boards, and options that they exclude."""

from ...contract.adapter import Adapter, Options
from ...contract.options import natural, positive, real

__all__ = ["ADAPTER"]

#: Commands for all boards, and commands for one board or all boards.
ALL = ("verilog", "simulate", "prove")
ONE = ("build", "flash", "monitor", "run")

CUT = """
--boards AxB: cut the torus into so many equal blocks along each axis, each on a board with a clock
    of its own: 2x1 (default one chip); --link-latency must cover the cut arcs, or is left out, and
    they take the least
--ppm P: with --boards: by how much each oscillator may be off, in millionths (default 100)
--retries N: with --boards: how often a run is repeated of which a link lost something (default 1)
--start-timeout CYCLES: with --boards: how long a start waits for those of all other boards, before
    it ends with error 11; 0 for ever (default 268435456)
--phy: with --boards: what carries words to other boards, which takes cycles: a wire for each bit,
    differential pairs, or transceivers (default parallel)
"""

ERRORS = """
--link-errors P: with --boards: how likely it is that a word changes on its way to another board, 0
    to 0.1 (default 0)
"""

BLOCK = """
--block A,B: with --boards: the block, by its coordinates among all, that is alone on the board,
    with its link ports looped back, or with --phy lvds or serdes on pairs of pins
--lanes N: with --phy lvds or serdes: pairs for data to each other board (default as many as it
    takes)
"""

ADAPTER = Adapter(
    name="boards",
    title="several boards",
    package=__name__.rpartition(".")[0],
    options=(
        Options(
            (*ALL, *ONE),
            CUT,
            {
                "ppm": real,
                "retries": natural,
                "start_timeout": natural,
                "phy": {"choices": ("parallel", "lvds", "serdes")},
            },
        ),
        Options(("simulate",), ERRORS, {"link_errors": real}),
        Options(ONE, BLOCK, {"lanes": positive}),
    ),
    excluded={
        "": ("top", "bus", "clocks", "fabric"),
        "verilog": ("flow", "templates"),
        "simulate": ("through_port", "wave", "trace", "stall", "faults", "engine", "repeat"),
    },
)
