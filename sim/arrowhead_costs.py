"""Broadcasting on the arrowhead torus: what the paper claims, the lower bound, and what is planned.

Dominique Deserable, "Broadcasting in the Arrowhead Torus", INRIA research report 2827, 1996. A row
is a protocol on one order; the number beside its name is that of its cost in the paper. "Planned"
is measured on the checked schedule, in the same cost model. "Rounds" are those of the schedule,
and "cycles" the clock cycles of its fabric in simulation, with one flit a chunk and every word
compared.

    python sim/arrowhead_costs.py --orders 1 2 3 4 5 --length 1000
"""

import argparse
from dataclasses import dataclass
from functools import cached_property

import torusfabric as tf
from torusfabric.algorithms.arrowhead import costs
from torusfabric.analysis.cost import schedule_cost
from torusfabric.planning import PlanOptions
from torusfabric.simulation.engines import choose_engine
from torusfabric.topology import Arrowhead


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

    def simulated(self):
        """Clock cycles of the fabric, one flit a chunk, and whether they are those predicted."""
        fabric = tf.Fabric(tf.compile(self.schedule), width=8)
        report = tf.simulate(fabric, engine=choose_engine(fabric).engine)
        return f"{report.cycles}{'' if report.passed else ' WRONG'}"


def cases(order, model):
    """The protocols of the paper on one order."""
    circuit, stored = model.circuit(), model.stored()
    packets = costs.best_packets(order, **stored)
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


#: Heading, width and value of each column.
COLUMNS = (
    ("order", 6, lambda case, model: f"{case.order}"),
    ("protocol", 28, lambda case, model: case.protocol),
    ("claimed", 12, lambda case, model: f"{case.claimed:.1f}"),
    ("bound", 12, lambda case, model: f"{case.bound:.1f}"),
    ("planned", 12, lambda case, model: f"{case.planned(model):.1f}"),
    ("rounds", 8, lambda case, model: f"{case.schedule.round_count}"),
    ("cycles", 8, lambda case, model: case.simulated()),
)


def table(orders, model):
    """The lines of the table."""
    yield "".join(heading.rjust(width) for heading, width, _ in COLUMNS)
    for order in orders:
        for case in cases(order, model):
            yield "".join(value(case, model).rjust(width) for _, width, value in COLUMNS)


def main():
    """Print the table for the orders and the cost model that the user chooses."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--orders", type=int, nargs="+", default=[1, 2, 3, 4, 5])
    for name, value in (("alpha", 10), ("beta", 10), ("delta", 1), ("tau", 1), ("length", 1000)):
        parser.add_argument(f"--{name}", type=float, default=value)
    arguments = vars(parser.parse_args())
    for line in table(arguments.pop("orders"), Model(**arguments)):
        print(line)


if __name__ == "__main__":
    main()
