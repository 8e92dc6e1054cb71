"""Multiply two matrices on a torus of processing elements, by SUMMA with all-gathers.

The matrices A and B have p * b rows and columns. The element in row i and column j of a p x p torus
has the blocks of A, B and C there, of b x b entries each. In each round, every element sends r
columns of its block of A to its row, and r rows of its block of B to its column.

    python examples/matmul/run.py --torus 4x4
    python examples/matmul/run.py --torus 8x8 --block 32 --multipliers 8 --picture use.svg
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
from support.job import run_job
from support.system import System

import torusfabric as tf
from matmul.element import ENTRY_BITS, SUM_BITS, MultiplierElement, Sizes

#: The modes of the fabric: an all-gather along rows, and one along columns.
ROWS, COLUMNS = 0, 1

#: Cycles of a job beside loading, runs, unloading and multiplying: the first entry is read, the
#: first words leave the fabric, and the last sums are written.
CONSTANT_CYCLES = 13


def make_system(sizes: Sizes) -> System:
    """Return the elements with a fabric of two all-gathers between them."""
    torus = tf.Torus(sizes.side, sizes.side)
    plans = [tf.plan(torus, "allgather@1"), tf.plan(torus, "allgather@0")]
    program = tf.compile(plans, max_flits=sizes.packet)
    address = (2 * sizes.block**2 - 1).bit_length()
    return System(program, MultiplierElement, sizes, width=ENTRY_BITS, memory=(address, SUM_BITS),
                  modes=[ROWS, COLUMNS] * sizes.rounds)  # fmt: skip


def forecast_cycles(system: System, sizes: Sizes) -> int:
    """Return the cycles of a multiplication.

    Before the first product, an element sends a panel of A, the all-gather of A runs, its result is
    received while that of B runs, and the result of B is received. From then on, the multipliers
    work without a pause, because panels arrive faster than they are used.
    """
    along_rows, along_columns = (
        system.program.cycles(sizes.packet, mode=mode) for mode in (ROWS, COLUMNS)
    )
    received = sizes.side * sizes.packet
    first = sizes.packet + along_rows + max(received, along_columns) + received
    return first + sizes.rounds * sizes.round_cycles + system.begin_cycles + CONSTANT_CYCLES


def blocks_of(matrix: np.ndarray, side: int) -> np.ndarray:
    """Return the block of each element, shape (elements, b, b), of a matrix."""
    block = len(matrix) // side
    parts = matrix.reshape(side, block, side, block).swapaxes(1, 2)
    return parts.reshape(side * side, block, block)


def signed_numbers(words: np.ndarray, bits: int) -> np.ndarray:
    """Return words of some bits as signed numbers."""
    words = words.astype(np.int64)
    return np.where(words >> bits - 1, words - (1 << bits), words)


def check_sizes(sizes: Sizes) -> None:
    """Raise an `InputError` if an element cannot be built, or would wait for panels."""
    for name in ("block", "panel", "multipliers"):
        if getattr(sizes, name).bit_count() != 1:
            raise tf.InputError(f"--{name} must be a power of two, not {getattr(sizes, name)}")
    if sizes.panel > sizes.block:
        raise tf.InputError(f"--panel must be at most --block, {sizes.block}, not {sizes.panel}")
    if 2 * sizes.multipliers > sizes.block or sizes.block < 4:
        raise tf.InputError(
            f"--block must be at least 4, and twice --multipliers, {2 * sizes.multipliers}, not "
            f"{sizes.block}: panels would arrive more slowly than they are used"
        )
    if sizes.side * sizes.block << 2 * ENTRY_BITS - 2 >= 1 << SUM_BITS - 1:
        raise tf.InputError(
            f"Matrices must have fewer than 512 rows, not {sizes.side * sizes.block}, for sums of "
            f"{SUM_BITS} bits; choose a smaller --block"
        )


def check_runs(system: System, sizes: Sizes) -> None:
    """Raise an `InputError` if two runs of the fabric take longer than the work between them."""
    runs = sum(system.program.cycles(sizes.packet, mode=mode) for mode in (ROWS, COLUMNS))
    needed = runs + 2 * (system.begin_cycles - 1)
    if sizes.round_cycles < needed:
        raise tf.InputError(
            f"A round of {sizes.round_cycles} cycles must have at least {needed}, those of its "
            "all-gathers; choose a larger --block or --panel, or fewer --multipliers"
        )


def draw_use(sizes: Sizes, measured: float, figure: Any) -> None:
    """Draw the use of the multipliers, forecast for blocks of all sizes and measured for one."""
    blocks = [block for block in (4, 8, 16, 32, 64) if block >= 2 * sizes.multipliers]
    use = []
    for block in blocks:
        other = sizes._replace(block=block)
        system = make_system(other)
        use.append(100 * other.rounds * other.round_cycles / forecast_cycles(system, other))
    figure.set_size_inches(6, 3.5)
    axes = figure.subplots()
    axes.plot(blocks, use, color="#4c72b0", marker="o", label="forecast")
    axes.plot(
        [sizes.block], [100 * measured], "x", color="#c44e52", markersize=10, label="measured"
    )
    axes.set_xscale("log", base=2)
    axes.set_xticks(blocks, [str(block) for block in blocks])
    axes.set_xlabel("rows and columns of a block")
    axes.set_ylabel("use of the multipliers, %")
    axes.set_ylim(0, 100)
    axes.legend()


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for sizes."""
    parser.add_argument("--torus", default="4x4", help="a square torus, such as 4x4 (the default)")
    parser.add_argument("--block", type=int, default=16, metavar="B",
                        help="rows and columns of a block, default 16")  # fmt: skip
    parser.add_argument("--panel", type=int, default=1, metavar="R",
                        help="columns of A that are sent in a round, default 1")  # fmt: skip
    parser.add_argument("--multipliers", type=int, default=4, metavar="M",
                        help="multipliers of an element, default 4")  # fmt: skip


def multiply(arguments: argparse.Namespace) -> Outcome:
    """Execute a job for these options."""
    torus = parse_torus(arguments.torus, 2, equal=True)
    sizes = Sizes(torus.sides[0], arguments.block, arguments.panel, arguments.multipliers)
    check_sizes(sizes)
    system, random = make_system(sizes), np.random.default_rng(arguments.seed)
    check_runs(system, sizes)
    most, order = 1 << ENTRY_BITS - 1, sizes.side * sizes.block
    left, right = random.integers(-most, most, (2, order, order))
    blocks = [blocks_of(left, sizes.side).swapaxes(1, 2), blocks_of(right, sizes.side)]
    words = np.concatenate([each.reshape(system.nodes, -1) for each in blocks], axis=1)
    job = run_job(system, words & ((1 << ENTRY_BITS) - 1), read=sizes.block**2,
                  engine=arguments.engine)  # fmt: skip
    product = signed_numbers(job.words, SUM_BITS).reshape(-1, sizes.block, sizes.block)
    if (product != blocks_of(left @ right, sizes.side)).any():
        raise tf.WorkFailed("The product must be what numpy computes")
    busy, forecast = sizes.rounds * sizes.round_cycles, forecast_cycles(system, sizes)
    report = {
        "result": f"{order} x {order} matrices: the product is what numpy computes",
        "order": order,
        "cycles": job.cycles,
        "forecast": forecast,
        "use": round(busy / job.cycles, 4),
        "multiplications": order**3,
        "runs": len(job.runs),
        "run_cycles": sorted({*job.runs}),
    }
    return report, system, partial(draw_use, sizes, busy / job.cycles)


main = partial(run_command, __doc__, add_options, multiply)

if __name__ == "__main__":
    sys.exit(main())
