"""A Jacobi iteration on sixteen nodes: halo, and an all-reduce for the norm.

A grid of values is cut into 4x4 squares, one for each node of a torus. The grid wraps around as the
torus does. In each iteration a node sends each side of its square to the neighbour at that side: an
exchange with four offsets. It then replaces each value by the mean of the four neighbouring values,
plus the heat of the value. An all-reduce gives all nodes the largest change of any value. The
example has two more ways to send the sides: a halo, in which a node sends all four sides to all
neighbours, and an all-gather of all sides, of which a node needs four.

    python examples/jacobi.py                 # simulate, and compare with numpy
    torusfabric build 4x4 exchange,allreduce --width 16 --max-flits 4 --op max --board ulx3s-85f
"""

import argparse

import numpy as np

import torusfabric as tf

#: Nodes along each side of the torus, values along each side of a node's square, bits of a value.
TORUS, SIDE, WIDTH = (4, 4), 4, 16

#: Collectives that carry the sides of squares, with the words of a message: one side to each
#: neighbour, all four sides to all neighbours, or all four sides to all nodes.
WAYS = {"exchange": SIDE, "halo": 4 * SIDE, "allgather": 4 * SIDE}


def sides_of(squares: np.ndarray) -> np.ndarray:
    """Return the sides of each square that face its neighbours at +0, -0, +1 and -1."""
    down, up, right, left = squares[:, -1], squares[:, 0], squares[:, :, -1], squares[:, :, 0]
    return np.stack([down, up, right, left], axis=1)


def step(squares: np.ndarray, heat: np.ndarray, received: np.ndarray) -> np.ndarray:
    """Return the squares after one iteration in whole numbers.

    `received` holds, for each node, the sides that neighbours send through +0, -0, +1 and -1.
    """
    padded = np.pad(squares, ((0, 0), (1, 1), (1, 1)))
    # A side that a neighbour sends through its +0 is the lower side of the square above.
    padded[:, 0, 1:-1], padded[:, -1, 1:-1] = received[:, 0], received[:, 1]
    padded[:, 1:-1, 0], padded[:, 1:-1, -1] = received[:, 2], received[:, 3]
    total = padded[:, :-2, 1:-1] + padded[:, 2:, 1:-1] + padded[:, 1:-1, :-2] + padded[:, 1:-1, 2:]
    return total // 4 + heat


class Iteration:
    """The squares of all nodes, and the engine that carries their sides.

    Parameters
    ----------
    way : str
        Collective that carries the sides, a key of `WAYS`.
    """

    def __init__(self, way: str) -> None:
        self.way, self.torus = way, tf.Torus(*TORUS)
        plans = [tf.plan(self.torus, way), tf.plan(self.torus, "allreduce")]
        self.program = tf.compile(plans, max_flits=WAYS[way], operators=["max"])
        nodes = np.arange(self.torus.nodes)
        #: Nodes whose ports +0, -0, +1 and -1 lead to each node.
        self.sources = self.torus.subtract(nodes[:, None], self.torus.generators[None, :])

    def exchange(self, squares: np.ndarray) -> np.ndarray:
        """Return the sides that each node receives from its four neighbours."""
        sides = sides_of(squares)
        nodes, length = len(squares), WAYS[self.way]
        found = self.program.execute(sides.reshape(nodes, -1), width=WIDTH, length=length)
        received = found.astype(np.int64).reshape(nodes, -1, length)
        if self.way == "exchange":
            return received
        whole = received.reshape(nodes, -1, 4, SIDE)
        if self.way == "allgather":
            whole = whole[np.arange(nodes)[:, None], self.sources]
        return whole[:, np.arange(4), np.arange(4)]

    def norm(self, changes: np.ndarray) -> int:
        """Return the largest change of any node, which all nodes receive."""
        found = self.program.execute(changes[:, None], width=WIDTH, mode=1, length=1)
        assert (found == found[0]).all(), "all nodes must agree"
        return int(found[0, 0])

    def run(self, squares: np.ndarray, heat: np.ndarray, iterations: int) -> tuple[np.ndarray, int]:
        """Return the squares after some iterations, and the largest change of the last one."""
        change = 0
        for _ in range(iterations):
            after = step(squares, heat, self.exchange(squares))
            change = self.norm(np.abs(after - squares).max(axis=(1, 2)))
            squares = after
        return squares, change

    @property
    def predicted(self) -> tuple[int, int]:
        """Predicted cycles of the run for the sides, and of the run for the norm."""
        return (
            self.program.cycles(mode=0, length=WAYS[self.way]),
            self.program.cycles(mode=1, length=1),
        )

    def simulate(self) -> tuple[int, ...]:
        """Return the cycles of both runs in a simulation of the hardware; it compares all words."""
        fabric = tf.Fabric(self.program, width=WIDTH)
        jobs = [tf.Job(mode=0, length=WAYS[self.way]), tf.Job(mode=1, length=1)]
        result = tf.simulate(fabric, jobs=jobs)
        assert result.passed, "all words must be right, in the predicted cycles"
        return tuple(job.cycles for job in result.jobs)


def problem(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return random initial squares, and the heat, which is not zero in one node."""
    shape = TORUS[0] * TORUS[1], SIDE, SIDE
    squares = np.random.default_rng(seed).integers(0, 1 << WIDTH - 4, shape)
    heat = np.zeros(shape, np.int64)
    heat[5] = 3
    return squares, heat


def expected(squares: np.ndarray, heat: np.ndarray, iterations: int) -> np.ndarray:
    """Return the squares after some iterations, computed on the whole grid in numpy."""
    rows, columns = TORUS

    def whole(parts: np.ndarray) -> np.ndarray:
        grid = parts.reshape(rows, columns, SIDE, SIDE).transpose(0, 2, 1, 3)
        return grid.reshape(rows * SIDE, columns * SIDE)

    grid, source = whole(squares), whole(heat)
    for _ in range(iterations):
        around = [np.roll(grid, by, axis) for axis in (0, 1) for by in (1, -1)]
        grid = sum(around) // 4 + source
    parts = grid.reshape(rows, SIDE, columns, SIDE).transpose(0, 2, 1, 3)
    return parts.reshape(-1, SIDE, SIDE)


def main() -> None:
    """Simulate and compare."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--iterations", type=int, default=20, metavar="N")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    squares, heat = problem(arguments.seed)
    wanted = expected(squares, heat, arguments.iterations)
    for way in WAYS:
        iteration = Iteration(way)
        found, change = iteration.run(squares, heat, arguments.iterations)
        assert (found == wanted).all(), "values must be what numpy computes"
        assert iteration.simulate() == iteration.predicted, "cycles must be as predicted"
        sides, norm = iteration.predicted
        print(f"{way}: {sides} cycles for the sides and {norm} for the norm, as predicted")
    print(f"after {arguments.iterations} iterations no value changes by more than {change}")


if __name__ == "__main__":
    main()
