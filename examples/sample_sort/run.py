"""Sort keys on a torus of processing elements by sample sort.

Each of p elements has n keys. It sorts them, and the elements agree on p - 1 splitters. Then each
element sends its keys to the elements whose share they belong to. At the end, the shares behind one
another are all keys in order.

    python examples/sample_sort/run.py --torus 4x4 --keys 256
    python examples/sample_sort/run.py --torus 8x8 --input sorted --deal --picture time.svg
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
from sample_sort.element import KEY_BITS, Sizes, SortElement, log2
from sample_sort.forecast import Phase, divide_keys, forecast_phases

#: The kinds of keys, each a function of a generator of random numbers and the number of keys.
INPUTS: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "random": lambda random, count: random.integers(0, 1 << KEY_BITS, count),
    "sorted": lambda random, count: np.sort(random.integers(0, 1 << KEY_BITS, count)),
    "reversed": lambda random, count: -np.sort(-random.integers(0, 1 << KEY_BITS, count)),
    "equal": lambda random, count: np.full(count, random.integers(0, 1 << KEY_BITS)),
    "few": lambda random, count: random.integers(0, 4, count),
    "skewed": lambda random, count: np.minimum(random.pareto(0.2, count), (1 << KEY_BITS) - 1),
}

#: The color of each kind of phase in a picture.
COLORS = {"sort": "#4c72b0", "send": "#dd8452", "run": "#55a868", "receive": "#8172b3"}


def make_system(sizes: Sizes) -> System:
    """Return the elements with a fabric of all-gathers, an all-reduce and an all-to-all."""
    torus, axes = tf.Torus(*sizes.sides), len(sizes.sides)
    names = [*(f"allgather@{axis}" for axis in sizes.axes), "allreduce", "alltoall"]
    program = tf.compile([tf.plan(torus, name) for name in names],
                         max_flits=max(sizes.samples, sizes.packet), operators=["max"])  # fmt: skip
    exchange = axes + 1
    modes = [*[exchange] * sizes.deal, *range(exchange), *[exchange] * sizes.rounds]
    return System(program, SortElement, sizes, width=sizes.word_bits,
                  memory=(log2(sizes.capacity) + 1, KEY_BITS), modes=modes)  # fmt: skip


def check_sizes(sizes: Sizes) -> None:
    """Raise an `InputError` if an element cannot be built."""
    named = {"sides of --torus": sizes.sides, "--keys": [sizes.keys],
             "--samples": [sizes.samples], "--packet": [sizes.packet]}  # fmt: skip
    for name, values in named.items():
        if any(value < 1 or value.bit_count() != 1 for value in values):
            raise tf.InputError(f"{name} must be powers of two, not {', '.join(map(str, values))}")
    least, most = max(sizes.nodes // sizes.sides[0], 2), sizes.keys
    if not least <= sizes.samples <= most:
        raise tf.InputError(
            f"--samples must be from {least} to --keys, {most}, not {sizes.samples}"
        )
    if sizes.packet > sizes.keys:
        raise tf.InputError(f"--packet must be at most --keys, {sizes.keys}, not {sizes.packet}")
    if sizes.deal and sizes.keys < sizes.nodes * 2:
        raise tf.InputError(
            f"--deal needs two keys for each node, --keys {2 * sizes.nodes}, not {sizes.keys}"
        )
    if sizes.deal and sizes.keys // sizes.nodes > sizes.packet:
        raise tf.InputError(
            f"--deal sends packets of {sizes.keys // sizes.nodes} keys; choose a larger --packet"
        )


def draw_phases(phases: list[Phase], totals: np.ndarray, sizes: Sizes, figure: Any) -> None:
    """Draw the time line of a job, and the keys of all elements before and after."""
    figure.set_size_inches(7, 4.5)
    time, shares = figure.subplots(2, height_ratios=[2, 1])
    names = [*dict.fromkeys(phase.name for phase in phases)]
    for kind, color in COLORS.items():
        for name in names:
            spans = [(phase.start, phase.end - phase.start) for phase in phases
                     if (phase.name, phase.kind) == (name, kind)]  # fmt: skip
            time.broken_barh(spans, (names.index(name) - 0.4, 0.8), color=color)
        time.plot([], [], "s", color=color, label=kind)
    time.set_yticks(range(len(names)), names)
    time.invert_yaxis()
    time.set_xlabel("cycle")
    time.legend()
    shares.bar(range(len(totals)), totals, color=COLORS["sort"])
    shares.axhline(sizes.keys, color="black", linewidth=1)
    shares.set_xlabel("element")
    shares.set_ylabel("keys received")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for sizes."""
    parser.add_argument("--torus", default="4x4", help="a torus, such as 4x4 (the default)")
    parser.add_argument("--keys", type=int, default=256, metavar="N",
                        help="keys of an element, default 256")  # fmt: skip
    parser.add_argument("--samples", type=int, metavar="S",
                        help="samples of an element, default one for each node")  # fmt: skip
    parser.add_argument("--packet", type=int, metavar="M",
                        help="keys of the longest packet, default one for each node")  # fmt: skip
    parser.add_argument("--deal", action="store_true",
                        help="first deal the keys to all elements, for keys in order")  # fmt: skip
    parser.add_argument("--input", choices=[*INPUTS], default="random", help="the kind of keys")


def sort_keys(arguments: argparse.Namespace) -> Outcome:
    """Execute a job for these options."""
    torus = parse_torus(arguments.torus)
    sizes = Sizes(tuple(torus.sides), arguments.keys, arguments.samples or torus.nodes,
                  arguments.packet or min(torus.nodes, arguments.keys), arguments.deal)  # fmt: skip
    check_sizes(sizes)
    system, random = make_system(sizes), np.random.default_rng(arguments.seed)
    keys = INPUTS[arguments.input](random, sizes.nodes * sizes.keys).astype(np.int64)
    parts = keys.reshape(sizes.nodes, sizes.keys)
    job = run_job(system, parts, read=sizes.capacity + 2, engine=arguments.engine)
    totals, largest = job.words[:, sizes.capacity], job.words[:, sizes.capacity + 1]
    found = np.concatenate([row[:count] for row, count in zip(job.words, totals, strict=True)])
    if not np.array_equal(found, np.sort(keys)):
        raise tf.WorkFailed("The shares behind one another must be what numpy sorts")
    shares = divide_keys(parts, sizes)
    if (totals != shares.totals).any() or (largest != shares.counts.max()).any():
        raise tf.WorkFailed("The keys of each share must be as many as numpy divides")
    phases, lengths = forecast_phases(system, sizes, shares), shares.packet_lengths(sizes)
    every = [system.program.cycles(length, mode=len(sizes.sides) + 1) for length in lengths]
    if job.runs[-len(every) :] != every:
        raise tf.WorkFailed(f"The all-to-alls must take {every} cycles, not {job.runs}")
    hops = shares.counts * torus.all_distances
    report = {
        "result": f"{keys.size} keys: the shares behind one another are what numpy sorts",
        "keys": keys.size,
        "cycles": job.cycles,
        "forecast": phases[-1].end,
        "largest_share": int(totals.max()),
        "capacity": sizes.capacity,
        "largest_part": int(largest[0]),
        "run_cycles": job.runs,
        "exchange_cycles": sum(every),
        "least_cycles": -(-int(hops.sum()) // (torus.nodes * torus.ports)),
    }
    return report, system, partial(draw_phases, phases, totals, sizes)


main = partial(run_command, __doc__, add_options, sort_keys)

if __name__ == "__main__":
    sys.exit(main())
