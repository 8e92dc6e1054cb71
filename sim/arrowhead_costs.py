"""Broadcasts on the arrowhead torus: times claimed by the paper, lower bounds and planned times.

Dominique Deserable, "Broadcasting in the Arrowhead Torus", INRIA research report 2827, 1996. A row
is a protocol on one order; the number beside its name is the equation of its cost in the paper.
The columns, all three times in the same cost model:

    claimed    time by the paper's equation
    bound      lower bound of the time
    planned    time of the planned and checked schedule
    rounds     rounds of that schedule
    cycles     clock cycles of its fabric in simulation, with one flit a chunk and every word
               compared; - for an order that is too large to simulate

Orders 1 to 5 are planned by default, and orders up to 3 are simulated, which takes half a minute.
Each further order to simulate takes about ten times as long.

    python sim/arrowhead_costs.py
    python sim/arrowhead_costs.py --orders 1 2 3 4 --largest 256 --length 500
"""

import argparse
from dataclasses import asdict, dataclass
from functools import cached_property

import paper_costs as costs
from hardware_cycles import simulated_cycles

import torusfabric as tf
from torusfabric.algorithms.arrowhead.spanning_tree import best_packet_count
from torusfabric.analysis.cost import schedule_cost
from torusfabric.cli.output import print_json, print_notices, progress_bar
from torusfabric.planning import PlanOptions
from torusfabric.topology import Arrowhead

#: Nodes of the largest fabric that is simulated by default.
LARGEST = 64


@dataclass(frozen=True)
class Model:
    """Parameters of the cost model: times, and the length of the message.

    Parameters
    ----------
    alpha : float
        Start-up time of a round of circuits.
    beta : float
        Start-up time of a step of store-and-forward.
    delta : float
        Time to switch a circuit through a node.
    tau : float
        Time to send a message of unit length over one link.
    length : float
        Length of the message.
    """

    alpha: float
    beta: float
    delta: float
    tau: float
    length: float

    def circuit(self):
        """Return the arguments of the cost functions for circuit switching."""
        return {"alpha": self.alpha, "delta": self.delta, "tau": self.tau, "length": self.length}

    def stored(self):
        """Return the arguments of the cost functions for store-and-forward."""
        return {"beta": self.beta, "tau": self.tau, "length": self.length}


@dataclass
class Case:
    """One row of the table: a protocol on an arrowhead torus.

    Parameters
    ----------
    protocol : str
        Name of the protocol, with the number of its equation.
    order : int
        Order n of the arrowhead torus, which has 4^n nodes.
    algorithm : str
        Algorithm that plans the protocol.
    options : PlanOptions
        Options of the algorithm.
    claimed : float
        Time by the paper's equation.
    bound : float
        Lower bound of the time.
    """

    protocol: str
    order: int
    algorithm: str
    options: PlanOptions
    claimed: float
    bound: float

    @cached_property
    def schedule(self):
        """Planned and checked schedule."""
        topology = Arrowhead(self.order)
        return tf.plan(topology, "broadcast", algorithm=self.algorithm, **self.options)

    def planned(self, model):
        """Return the time of the planned schedule in a cost model."""
        return float(schedule_cost(self.schedule).time(**vars(model)))


def cases(order, model):
    """Yield the protocols of the paper on one order."""
    circuit, stored = model.circuit(), model.stored()
    times = stored["beta"], stored["tau"], stored["length"]
    packets = best_packet_count(order, tf.Options(times=times))
    floor = costs.store_and_forward_bound(order, **stored)
    for ports, equation in ((3, 8), (6, 9)):
        yield Case(
            f"circuit, {ports} ports ({equation})",
            order,
            "wormhole-forest",
            PlanOptions(ports=ports),
            costs.forest_cost(order, ports=ports, **circuit),
            costs.circuit_bound(order, ports=ports, **circuit),
        )
    for trees, equation in ((1, 12), (2, 13)):
        claimed = costs.tree_cost(order, trees=trees, **stored)
        options = PlanOptions(trees=trees)
        protocol = f"{'one tree' if trees == 1 else 'two trees'} ({equation})"
        yield Case(protocol, order, "spanning-tree", options, claimed, floor)
    yield Case(
        f"two trees, {packets} packet{'s' * (packets > 1)} (14)",
        order,
        "spanning-tree",
        PlanOptions(trees=2, packets=packets),
        costs.pipelined_optimum(order, **stored),
        floor,
    )


#: Width of each column in characters, by name.
COLUMNS = {"order": 6, "protocol": 28, "claimed": 12, "bound": 12, "planned": 12, "rounds": 8,
           "cycles": 8}  # fmt: skip


def row(case, model, largest):
    """Return the cells of a case by column name; "cycles" is None if the case is not simulated."""
    return {
        "order": case.order,
        "protocol": case.protocol,
        "claimed": float(case.claimed),
        "bound": float(case.bound),
        "planned": case.planned(model),
        "rounds": case.schedule.round_count,
        "cycles": simulated_cycles(case.schedule) if 4**case.order <= largest else None,
    }


def rows(orders, model, largest=LARGEST, progress=lambda *_: None):
    """Yield the rows of all orders, one after another."""
    todo = [case for order in orders for case in cases(order, model)]
    for done, case in enumerate(todo):
        progress(done, len(todo), f"order {case.order}, {case.protocol}")
        yield row(case, model, largest)


def line(cells):
    """Return a row, or the headings, as a line of the table."""
    texts = [
        "-" if cell is None else f"{cell:.1f}" if isinstance(cell, float) else str(cell)
        for cell in cells
    ]
    return "".join(text.rjust(width) for text, width in zip(texts, COLUMNS.values(), strict=True))


def main():
    """Print the table for the orders and the cost model that the user chooses."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--orders", type=int, nargs="+", default=[1, 2, 3, 4, 5])
    parser.add_argument(
        "--largest",
        type=int,
        default=LARGEST,
        metavar="N",
        help=f"nodes simulated at most (default {LARGEST})",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    for name, value in (("alpha", 10), ("beta", 10), ("delta", 1), ("tau", 1), ("length", 1000)):
        parser.add_argument(f"--{name}", type=float, default=value)
    arguments = vars(parser.parse_args())
    orders, largest, as_json = (arguments.pop(name) for name in ("orders", "largest", "json"))
    model, found = Model(**arguments), []
    if not as_json:
        print(line(COLUMNS))
    with print_notices(), progress_bar("planning") as progress:
        for cells in rows(orders, model, largest, progress):
            found.append(cells)
            if not as_json:
                print(line(cells.values()), flush=True)
    if as_json:
        print_json({"model": asdict(model), "rows": found})


if __name__ == "__main__":
    main()
