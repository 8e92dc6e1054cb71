"""Broadcasting on the arrowhead torus: what the paper claims, the lower bound, and what is planned.

Dominique Deserable, "Broadcasting in the Arrowhead Torus", INRIA research report 2827, 1996. A row
is a protocol on one order; the number beside its name is that of its cost in the paper. "Planned"
is measured on the checked schedule, in the same cost model. "Rounds" are those of the schedule,
and "cycles" the clock cycles of its fabric in simulation, with one flit a chunk and every word
compared; - where it is not simulated. By default up to order 3, which takes half a minute; each
order more takes some ten times as long.

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

#: Nodes of the largest fabric that is simulated unless more are asked for.
LARGEST = 64


@dataclass(frozen=True)
class Model:
    """The parameters of the cost model: times, and the length of the message."""

    alpha: float
    beta: float
    delta: float
    tau: float
    length: float

    def circuit(self):
        """Those of the circuit-switched costs."""
        return {"alpha": self.alpha, "delta": self.delta, "tau": self.tau, "length": self.length}

    def stored(self):
        """Those of the store-and-forward costs."""
        return {"beta": self.beta, "tau": self.tau, "length": self.length}


@dataclass
class Case:
    """One row: a protocol on an arrowhead of one order."""

    protocol: str
    order: int
    algorithm: str
    options: PlanOptions
    claimed: float
    bound: float

    @cached_property
    def schedule(self):
        """The planned schedule, which is checked."""
        topology = Arrowhead(self.order)
        return tf.plan(topology, "broadcast", algorithm=self.algorithm, **self.options)

    def planned(self, model):
        """Time of the planned schedule."""
        return float(schedule_cost(self.schedule).time(**vars(model)))


def cases(order, model):
    """The protocols of the paper on one order."""
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


#: The width of each column.
COLUMNS = {"order": 6, "protocol": 28, "claimed": 12, "bound": 12, "planned": 12, "rounds": 8,
           "cycles": 8}  # fmt: skip


def row(case, model, largest):
    """What is found of a case, by the names of the columns; None for what is not simulated."""
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
    """The rows of all orders, one after another."""
    todo = [case for order in orders for case in cases(order, model)]
    for done, case in enumerate(todo):
        progress(done, len(todo), f"order {case.order}, {case.protocol}")
        yield row(case, model, largest)


def line(cells):
    """A row, or the headings, as a line of the table."""
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
