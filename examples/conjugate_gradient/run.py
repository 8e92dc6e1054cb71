"""Solve a Poisson problem on a torus of processing elements, by conjugate gradients.

The grid of points is divided into blocks, one for each element. In each iteration, elements send
the sides of their blocks to their neighbours (an exchange), and two sums of all elements are formed
(all-reduces). All numbers are binary32. Points around the grid are zero.

    python examples/conjugate_gradient/run.py
    python examples/conjugate_gradient/run.py --torus 2x4 --points 24x40 --picture time.svg
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.command import Outcome, parse_torus, run_command
from support.job import run_job
from support.system import System

import torusfabric as tf
from conjugate_gradient.arithmetic import DIVIDE_CYCLES, MULTIPLY_CYCLES, SUM_CYCLES, WORD_BITS
from conjugate_gradient.element import (
    EXCHANGE,
    REDUCE,
    STENCIL_CYCLES,
    UPDATE_CYCLES,
    GradientElement,
    Sizes,
)
from conjugate_gradient.model import iterate, join_blocks, solve_directly, split_grid

#: Iterations end when the residual is shorter than at the beginning by this factor.
REDUCTION = 1e-6

#: Largest relative error of a solution, against the direct one.
LARGEST_ERROR = 1e-4

#: Most iterations of a job.
MOST_ITERATIONS = 20_000


def make_program(sizes: Sizes) -> tf.Program:
    """Return the program of an all-reduce and an exchange."""
    torus = tf.Torus(*sizes.sides)
    plans = [tf.plan(torus, "allreduce", algorithm="spanning-tree", flits=1),
             tf.plan(torus, "exchange", flits=sizes.packet)]  # fmt: skip
    return tf.compile(plans, max_flits=sizes.packet, operators=["add:fp32"])


def make_system(program: tf.Program, sizes: Sizes) -> System:
    """Return the elements with the fabric between them."""
    address = max((sizes.points - 1).bit_length(), 1)
    return System(
        program, GradientElement, sizes, width=WORD_BITS, memory=(address, WORD_BITS),
        modes=[REDUCE, EXCHANGE, REDUCE] * sizes.iterations,
    )  # fmt: skip


def forecast_steps(system: System, sizes: Sizes) -> dict[str, int]:
    """Return the cycles of each step of an iteration, by its name.

    A pass takes a cycle for each point, and empties its pipeline. In an exchange, an element reads
    the words of four sides, sends them, and receives as many.
    """
    points, words = sizes.points, 4 * sizes.packet
    reduce, exchange = (
        system.begin_cycles + system.program.cycles(length, mode=mode) + system.arrive_cycles
        for mode, length in ((REDUCE, 1), (EXCHANGE, sizes.packet))
    )
    last_product = MULTIPLY_CYCLES + SUM_CYCLES
    return {
        "update": points + UPDATE_CYCLES + last_product,
        "all-reduce of rho": reduce + 1,
        "beta": DIVIDE_CYCLES,
        "direction": points + UPDATE_CYCLES,
        "exchange": words + exchange + words,
        "stencil": points + STENCIL_CYCLES + last_product,
        "all-reduce of sigma": reduce + 1,
        "alpha": DIVIDE_CYCLES,
    }


def forecast_cycles(system: System, sizes: Sizes) -> int:
    """Return the cycles of a job: its iterations, and a last pass that completes the solution.

    All elements have ended a cycle later.
    """
    steps = forecast_steps(system, sizes)
    return sizes.iterations * sum(steps.values()) + steps["direction"] + 1


def reduction_of(program: tf.Program) -> Callable[[np.ndarray], np.ndarray]:
    """Return the all-reduce of a number of each element, in the order of the fabric."""

    def reduce(numbers: np.ndarray) -> np.ndarray:
        words = numbers.view(np.uint32)[:, None]
        found = program.execute(words, width=WORD_BITS, mode=REDUCE, length=1)
        return found.astype(np.uint32).view(np.float32)[:, 0]

    return reduce


def parse_sizes(arguments: argparse.Namespace) -> Sizes:
    """Return the sizes that the options choose, but for the iterations."""
    torus = parse_torus(arguments.torus, 2)
    axes = arguments.points.split("x")
    points = [int(size) if size.isdecimal() else 0 for size in axes * (3 - len(axes))]
    sides = torus.sides
    if len(points) != 2 or any(p < 1 or p % side for p, side in zip(points, sides, strict=True)):
        like = "x".join(str(8 * side) for side in sides)
        raise tf.InputError(f"--points must be multiples of the sides of --torus, such as {like}, "
                            f"not {arguments.points}")  # fmt: skip
    if arguments.iterations is not None and not 1 <= arguments.iterations <= MOST_ITERATIONS:
        raise tf.InputError(
            f"--iterations must be from 1 to {MOST_ITERATIONS}, not {arguments.iterations}"
        )
    return Sizes((sides[0], sides[1]), points[0] // sides[0], points[1] // sides[1], 1)


def draw_iteration(steps: dict[str, int], residuals: list[float], figure: Any) -> None:
    """Draw the time line of an iteration, and the residual of each iteration."""
    figure.set_size_inches(7, 5)
    time, progress = figure.subplots(2)
    begin = 0
    for row, (name, cycles) in enumerate(steps.items()):
        communicates = name.startswith(("all", "exchange"))
        time.broken_barh([(begin, cycles)], (row - 0.4, 0.8),
                         color="#55a868" if communicates else "#4c72b0")  # fmt: skip
        begin += cycles
    time.set_yticks(range(len(steps)), [*steps])
    time.invert_yaxis()
    time.set_xlabel("cycle of an iteration")
    progress.semilogy(np.array(residuals) / residuals[0], color="#c44e52")
    progress.set_xlabel("iteration")
    progress.set_ylabel("residual")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for sizes."""
    parser.add_argument("--torus", default="4x4", help="a torus, such as 4x4 (the default)")
    parser.add_argument("--points", default="32", metavar="N",
                        help="points along each axis, such as 24x40, default 32")  # fmt: skip
    parser.add_argument("--iterations", type=int, metavar="K",
                        help="iterations, default until the residual is a millionth")  # fmt: skip


def solve(arguments: argparse.Namespace) -> Outcome:
    """Execute a job for these options."""
    sizes, most = parse_sizes(arguments), arguments.iterations
    program, sides = make_program(sizes), sizes.sides
    shape = (sides[0] * sizes.rows, sides[1] * sizes.columns)
    grid = np.random.default_rng(arguments.seed).normal(size=shape).astype(np.float32)

    def goes_on(residuals: list[float]) -> bool:
        if most:
            return len(residuals) <= most
        return residuals[-1] > REDUCTION * residuals[0] and len(residuals) <= MOST_ITERATIONS

    blocks = split_grid(grid, sides)
    solution = iterate(blocks, sides, reduction_of(program), goes_on)
    sizes = sizes._replace(iterations=len(solution.residuals) - 1)
    system = make_system(program, sizes)
    job = run_job(system, blocks.view(np.uint32).reshape(len(blocks), -1), read=sizes.points,
                  engine=arguments.engine)  # fmt: skip
    words = job.words.astype(np.uint32)
    wrong = int((words != solution.x.view(np.uint32).reshape(words.shape)).sum())
    if wrong:
        raise tf.WorkFailed(f"{wrong} of {grid.size} points are not what the numpy model computes")
    exact = solve_directly(grid.astype(np.float64))
    found = join_blocks(words.view(np.float32).reshape(blocks.shape), sides)
    error = float(np.linalg.norm(found - exact) / np.linalg.norm(exact))
    if most is None and error > LARGEST_ERROR:
        raise tf.WorkFailed(f"The relative error must be at most {LARGEST_ERROR}, not {error:.1e}")
    steps, forecast = forecast_steps(system, sizes), forecast_cycles(system, sizes)
    each = sorted({*np.diff(job.ends[::3]).tolist()})
    if job.cycles != forecast or each not in ([], [sum(steps.values())]):
        raise tf.WorkFailed(f"A job takes {job.cycles} cycles and an iteration {each}, not "
                            f"{forecast} and {sum(steps.values())} as forecast")  # fmt: skip
    report = {
        "result": f"{shape[0]} x {shape[1]} points: all as in the numpy model, bit by bit",
        "points": list(shape),
        "torus": arguments.torus,
        "iterations": sizes.iterations,
        "cycles": job.cycles,
        "forecast": forecast,
        "iteration_cycles": each[0] if each else None,
        "iteration_forecast": sum(steps.values()),
        "steps": steps,
        "run_cycles": sorted({*job.runs}),
        "points_compared": grid.size,
        "points_wrong": wrong,
        "residual": float(f"{solution.residuals[-1] / solution.residuals[0]:.2g}"),
        "error": float(f"{error:.2g}"),
        "busy": round(3 * sizes.points / sum(steps.values()), 4),
    }
    return report, system, partial(draw_iteration, steps, solution.residuals)


main = partial(run_command, __doc__, add_options, solve)

if __name__ == "__main__":
    sys.exit(main())
