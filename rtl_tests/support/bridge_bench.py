"""Small fabrics of all collectives, for tests of the bridge."""

from torusfabric.collective import Operator

__all__ = ["COLLECTIVES", "REDUCTIONS"]

COLLECTIVES = [
    ("2x2", "allgather", "hamiltonian", {"flits": 2}),
    ("3x3", "allgather", "one-packet", {"flits": 1}),
    ("2x3", "alltoall", "matching", {"flits": 2}),
    ("3x3", "scatter", "matching", {"flits": 2, "root": 2}),
    ("3x3", "gather", "matching", {"flits": 2, "root": 4}),
    ("arrowhead:1", "broadcast", "wormhole-forest", {"flits": 4, "root": 2}),
    ("2x3", "alltoall@1", "matching", {"flits": 2}),
    ("3x2", "gather@0", "max-flow", {"flits": 2, "root": 1}),
]

REDUCTIONS = [
    ("2x2", "reduce-scatter", "matching", {"flits": 2}),
    ("3x3", "reduce-scatter", "matching", {"flits": 1, "operator": Operator.parse("min:signed")}),
    ("2x2", "allreduce", "matching", {"flits": 4, "operator": Operator.parse("xor")}),
    ("3", "allreduce", "matching", {"operator": Operator.parse("max")}),
    ("2x3", "allreduce", "matching", {"flits": 6, "operator": Operator.parse("or")}),
    ("2x3", "allreduce@1", "matching", {"flits": 3, "operator": Operator.parse("max")}),
    ("3x3", "reduce", "max-flow", {"flits": 2, "root": 4, "operator": Operator.parse("and")}),
    ("2x2", "reduce", "diagonal", {"flits": 3, "root": 1}),
]
