"""Command-line options of fabrics on several boards, and options that they exclude."""

from ...contract.adapter import Adapter, AdapterOptions
from ...contract.options import parse_non_negative_int, parse_number, parse_positive_int

__all__ = ["ADAPTER"]

#: Commands for all boards, and commands for one board or all boards.
ALL = ("verilog", "simulate", "prove")
ONE = ("build", "flash", "monitor", "run")

CUT = """
--boards AxB: Cut the torus into this many equal blocks along each axis, each on a board with a
    clock of its own; --link-latency must cover the links between boards, or is left out for the
    least. --rate AxB=1/2 gives them a rate of their own. Default: one chip. Example: 2x1.
--ppm P: with --boards: tolerance of each oscillator in millionths. Default: 100.
--retries N: with --boards: number of times that a run is repeated after an error of a link.
    Default: 1.
--start-timeout CYCLES: with --boards: cycles that a start waits for the starts of all other boards
    before it ends with error 11; 0 waits for ever. Default: 268435456.
--phy: with --boards: what carries words to other boards, and takes cycles: a wire for each bit
    (parallel), differential pairs (lvds) or transceivers (serdes). Default: parallel.
"""

ERRORS = """
--link-errors P: with --boards: probability that a word changes on its way to another board, 0 to
    0.1. Default: 0.
"""

BLOCK = """
--block A,B: with --boards: coordinates of the block that is alone on the board, with its link ports
    looped back, or on pairs of pins with --phy lvds or serdes. Example: 0,1.
--lanes N: with --phy lvds or serdes: pairs of pins for data to each other board. Default: as many
    as are needed.
"""

ADAPTER = Adapter(
    name="boards",
    title="several boards",
    package=__name__.rpartition(".")[0],
    options=(
        AdapterOptions(
            (*ALL, *ONE),
            CUT,
            {
                "ppm": parse_number,
                "retries": parse_non_negative_int,
                "start_timeout": parse_non_negative_int,
                "phy": {"choices": ("parallel", "lvds", "serdes")},
            },
        ),
        AdapterOptions(("simulate",), ERRORS, {"link_errors": parse_number}),
        AdapterOptions(ONE, BLOCK, {"lanes": parse_positive_int}),
    ),
    excluded={
        "": ("top", "bus", "clocks", "fabric"),
        "verilog": ("flow", "templates"),
        "simulate": ("through_port", "wave", "trace", "stall", "faults", "engine", "repeat"),
    },
)
