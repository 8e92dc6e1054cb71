"""Transform a cube of N^3 points on a torus of P^3 processing elements, by a 3-D FFT.

Each element transforms its points along x. An all-to-all among the elements of a plane follows,
then the transform along y, an all-to-all along the last axis, and the transform along z. The points
are divided into pieces, so that elements compute while the fabric moves other pieces.

    python examples/fft3d/run.py --points 32 --torus 4x4x4
    python examples/fft3d/run.py --points 64 --torus 8x8x8 --picture times.svg
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.command import Outcome, parse_torus, run_command
from support.job import JobReport, run_job
from support.system import System

import torusfabric as tf
from fft3d.element import Stage, Transformer
from fft3d.layout import Coordinates, Layout, X, Y, Z, place_points
from fft3d.model import BITS, transform_cube

#: The axes of the torus along which points are exchanged after pass x, and after pass y.
AXES = ("0+1", "2")

#: Largest real and imaginary part of the input; the absolute value is then less than 2^15 - 64.
LARGEST = 23_000

#: Clock rate at which cycles are compared with published times, in MHz.
CLOCK = 250

#: Published times in microseconds, by the number of points along an axis.
PUBLISHED = {32: 5.46, 64: 9.52}

#: Cycles of a piece beside its run and the pipeline: its first word is read, and a word that leaves
#: the fabric is stored.
STORE_CYCLES = 2

#: The signals that the picture shows, by their bits in the activity of an element.
SOURCE, SINK, RECEIVES = 0, 3, 6


def make_system(layout: Layout) -> System:
    """Return the elements with a fabric of two all-to-alls between them."""
    torus = tf.Torus(layout.side, layout.side, layout.side)
    flits = [size * layout.lanes for size in layout.packet_words]
    plans = [tf.plan(torus, f"alltoall@{axes}", flits=each)
             for axes, each in zip(AXES, flits, strict=True)]  # fmt: skip
    program = tf.compile(plans, max_flits=max(flits))
    address = (layout.words * layout.lanes - 1).bit_length()
    return System(
        program, Transformer, layout, width=2 * BITS, beat=layout.lanes,
        memory=(address, 2 * BITS), modes=[mode for mode in (X, Y) for _ in range(layout.pieces)],
    )  # fmt: skip


def pipeline_latency(layout: Layout) -> int:
    """Return the cycles from the read of the last word of a piece to its last result."""
    sizes = [layout.points >> stage for stage in range((layout.points - 1).bit_length())]
    registers = sum(Stage.latency(size) for size in sizes)
    return 2 + sum(size // 2 * layout.channels for size in sizes) + registers


def run_cycles(system: System, layout: Layout) -> list[int]:
    """Return the cycles of a run of each mode."""
    return [system.program.cycles(size * layout.lanes, mode=mode)
            for mode, size in enumerate(layout.packet_words)]  # fmt: skip


def forecast_cycles(system: System, layout: Layout) -> int:
    """Return the cycles of a whole transform, or fewer if elements wait to send.

    Elements never wait to send if both runs together take twice the cycles in which a piece leaves
    the pipeline, its number of words.

    The pipeline reads word i of a pass at the time read[i] = max(read[i - 1] + 1, stored[i] + 1),
    where stored[i] is the time at which the word is in memory. A piece leaves the pipeline
    `latency` cycles after its last word is read. Its run ends at the time ends[k] = max(ends[k -
    1], leaves[k] + begin) + run, and its words are stored from then on, one in a cycle.
    """
    words, pieces, latency = layout.piece_words, layout.pieces, pipeline_latency(layout)
    begin = STORE_CYCLES + system.begin_cycles
    steps, stored = np.arange(layout.words), np.full(layout.words, -1)
    last = end = -1
    for transform in (X, Y, Z):
        needed = stored[layout.places(transform)[0].max(axis=1)]
        read = steps + np.maximum.accumulate(np.maximum(needed, last) + 1 - steps)
        last = int(read[-1])
        if transform == Z:
            break
        run, leaves = run_cycles(system, layout)[transform], read[words - 1 :: words] + latency
        for piece in range(pieces):
            end = max(end, int(leaves[piece]) + begin) + run
            arrives = end + system.arrive_cycles - 2
            stored[words * piece : words * (piece + 1)] = arrives + np.arange(words)
    # The last result is stored, and the element reports the end of its job.
    return last + latency + 2


def pack_words(cube: np.ndarray, places: Coordinates) -> np.ndarray:
    """Return the words of a cube of shape (2, N, N, N) in the memories, a row for each element."""
    real, imaginary = cube[:, places.x, places.y, places.z] & ((1 << BITS) - 1)
    words: np.ndarray = (real | imaginary << BITS).reshape(len(real), -1)
    return words


def measure_accuracy(points: np.ndarray, cube: np.ndarray) -> tuple[float, float]:
    """Return the root-mean-square error and the signal-to-noise ratio (dB) against numpy."""
    exact = np.fft.fftn(cube[0] + 1j * cube[1]) / cube[0].size
    noise = np.mean(np.abs(points[0] + 1j * points[1] - exact) ** 2)
    return float(noise**0.5), float(10 * np.log10(np.mean(np.abs(exact) ** 2) / noise))


def check_sizes(layout: Layout) -> None:
    """Raise an `InputError` if an element cannot be built."""
    for name in ("points", "pieces", "lanes"):
        if getattr(layout, name) < 1 or getattr(layout, name).bit_count() != 1:
            raise tf.InputError(f"--{name} must be a power of two, not {getattr(layout, name)}")
    if layout.side < 2 or layout.side.bit_count() != 1:
        raise tf.InputError(f"Sides of --torus must be powers of two from 2, not {layout.side}")
    if layout.points < max(layout.side**2, 8):
        raise tf.InputError(
            f"--points must be at least {max(layout.side**2, 8)}, 8 or the square of a "
            f"side of --torus, not {layout.points}"
        )
    if layout.lanes == 1:
        raise tf.InputError("--lanes must be at least 2; one point a cycle is slower than links")
    if layout.pieces * layout.lanes > layout.wide:
        raise tf.InputError(
            f"--pieces times --lanes must be at most {layout.wide}, the points along z of a "
            f"node, not {layout.pieces * layout.lanes}"
        )


def draw_times(job: JobReport, layout: Layout, figure: Any) -> None:
    """Draw the cycles in which element 0 and the fabric work, as the simulation found them."""
    # The system outputs the activity of the element a cycle later.
    activity = np.append(job.watched["element_read_data_0"][1:], 0).astype(int)
    colours = ("#4c72b0", "#dd8452", "#55a868")
    figure.set_size_inches(8, 2.8)
    axes = figure.subplots()

    def draw_row(row: int, bars: np.ndarray, colour: str) -> None:
        edges = np.flatnonzero(np.diff(np.concatenate([[0], bars, [0]])))
        spans = [(int(first), int(last - first))
                 for first, last in zip(edges[::2], edges[1::2], strict=True)]  # fmt: skip
        axes.broken_barh(spans, (row - 0.4, 0.8), facecolors=colour, edgecolors="white", lw=0.3)

    for row, bit in ((3, SOURCE), (1, SINK)):
        for transform in (X, Y, Z):
            works = (activity >> bit & 1) & ((activity >> bit + 1 & 3) == transform)
            draw_row(row, works, colours[transform])
    for number, (end, cycles) in enumerate(zip(job.ends, job.runs, strict=True)):
        axes.broken_barh([(end - cycles, cycles)], (1.6, 0.8), edgecolors="white", lw=0.8,
                         facecolors=colours[number // layout.pieces])  # fmt: skip
    second = np.cumsum(activity >> RECEIVES & 1) > layout.words
    for transform, of_pass in ((X, ~second), (Y, second)):
        draw_row(0, (activity >> RECEIVES & 1) & of_pass, colours[transform])
    axes.set_yticks(range(4), ["element receives", "pipeline ends", "fabric runs",
                               "pipeline begins"])  # fmt: skip
    axes.set_xlim(0, job.cycles)
    axes.set_xlabel("cycles")
    for name, colour in zip(("pass x", "pass y", "pass z"), colours, strict=True):
        axes.plot([], [], color=colour, lw=6, label=name)
    axes.legend(ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1), frameon=False)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for sizes."""
    parser.add_argument("--points", type=int, default=32, metavar="N",
                        help="points along each axis of the cube, default 32")  # fmt: skip
    parser.add_argument("--torus", default="4x4x4", help="three equal sides, default 4x4x4")
    parser.add_argument("--lanes", type=int, default=2, metavar="R",
                        help="points that an element transforms in a cycle, default 2")  # fmt: skip
    parser.add_argument("--pieces", type=int, metavar="K",
                        help="pieces of a pass, default 4 or as many as fit")  # fmt: skip


def transform(arguments: argparse.Namespace) -> Outcome:
    """Execute a job for these options."""
    torus = parse_torus(arguments.torus, 3, equal=True)
    points, lanes, side = arguments.points, arguments.lanes, torus.sides[0]
    pieces = arguments.pieces
    if pieces is None:
        pieces = max(1, min(4, points // side // max(lanes, 1)))
    layout = Layout(points, side, pieces, lanes)
    check_sizes(layout)
    system, random = make_system(layout), np.random.default_rng(arguments.seed)
    cube = random.integers(-LARGEST, LARGEST, (2, points, points, points))
    before, after = place_points(layout)
    job = run_job(
        system, pack_words(cube, before), read=layout.words * lanes, engine=arguments.engine,
        watch=["element_read_data_0"] if arguments.picture else [],
    )  # fmt: skip
    result = transform_cube(cube)
    wrong = int((job.words != pack_words(result, after)).sum())
    if wrong:
        raise tf.WorkFailed(f"{wrong} of {points**3} points are not what the numpy model computes")
    forecast, error = forecast_cycles(system, layout), measure_accuracy(result, cube)
    runs = run_cycles(system, layout)
    exact = sum(runs) >= 2 * layout.piece_words
    if job.runs != [cycles for cycles in runs for _ in range(pieces)]:
        raise tf.WorkFailed(f"Runs take {job.runs} cycles, not {runs} as forecast")
    if job.cycles < forecast or (exact and job.cycles > forecast):
        raise tf.WorkFailed(f"The transform takes {job.cycles} cycles, not {forecast} as forecast")
    report = {
        "result": f"{points}^3 points on {arguments.torus}: all as in the numpy model",
        "points": points,
        "torus": arguments.torus,
        "cycles": job.cycles,
        "forecast": forecast,
        "forecast_exact": exact,
        "microseconds": job.cycles / CLOCK,
        **({"published_microseconds": PUBLISHED[points]} if points in PUBLISHED else {}),
        "run_cycles": runs,
        "pieces": pieces,
        "points_compared": points**3,
        "points_wrong": wrong,
        "busy": round(3 * layout.words / job.cycles, 4),
        "rms_error": round(error[0], 3),
        "signal_to_noise_db": round(error[1], 1),
    }
    return report, system, partial(draw_times, job, layout)


main = partial(run_command, __doc__, add_options, transform)

if __name__ == "__main__":
    sys.exit(main())
