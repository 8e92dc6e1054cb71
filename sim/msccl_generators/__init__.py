"""Published algorithms as MSCCL XML files, for comparisons and for tests."""

from .algorithms import (
    all_pairs_allreduce,
    all_pairs_alltoall,
    doubling_exchange,
    halving_doubling_allreduce,
    halving_reduce_scatter,
    hierarchical_allgather,
    recursive_doubling_allgather,
    ring_allgather,
    ring_allreduce,
    ring_reduce_scatter,
)
from .kept import folded_allreduce, leaders_allreduce, paired_allreduce, random_allreduce
from .program import Program

__all__ = [
    "Program",
    "all_pairs_allreduce",
    "all_pairs_alltoall",
    "doubling_exchange",
    "folded_allreduce",
    "halving_doubling_allreduce",
    "halving_reduce_scatter",
    "hierarchical_allgather",
    "leaders_allreduce",
    "paired_allreduce",
    "random_allreduce",
    "recursive_doubling_allgather",
    "ring_allgather",
    "ring_allreduce",
    "ring_reduce_scatter",
]
