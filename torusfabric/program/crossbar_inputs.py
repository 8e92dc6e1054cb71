"""How many inputs the crossbars of a fabric of several collectives have, shared and own."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from ..topology import BoolArray
    from .mode import Mode
    from .program import Program

__all__ = ["CrossbarInputs", "count_inputs"]


class CrossbarInputs(NamedTuple):
    """Inputs of out-ports, counted over all out-ports of all nodes.

    Parameters
    ----------
    total : int
        What out-ports select from in any mode.
    shared : int
        What they select from in two modes or more.
    of_modes : tuple of int
        What they select from in each mode.
    own : tuple of int
        What they select from in that mode alone.
    """

    total: int
    shared: int
    of_modes: tuple[int, ...]
    own: tuple[int, ...]


def count_inputs(program: Program) -> CrossbarInputs:
    """Count the inputs of all out-ports.

    Parameters
    ----------
    program : Program

    Returns
    -------
    CrossbarInputs

    Examples
    --------
    Each of 36 out-ports injects, and passes on what comes by other in-ports in one mode than in the
    other one.

    >>> import torusfabric as tf
    >>> plans = [tf.plan("3x3", name) for name in ("allgather", "alltoall")]
    >>> count_inputs(tf.compile(plans, max_flits=2))
    CrossbarInputs(total=123, shared=21, of_modes=(72, 72), own=(51, 51))
    """
    used = np.stack([_used(program, mode) for mode in program.modes])
    count = used.sum(axis=0)
    return CrossbarInputs(
        total=int((count > 0).sum()),
        shared=int((count > 1).sum()),
        of_modes=tuple(used.sum(axis=(1, 2, 3)).tolist()),
        own=tuple((used & (count == 1)).sum(axis=(1, 2, 3)).tolist()),
    )


def _used(program: Program, mode: Mode) -> BoolArray:
    """Of each node, out-port and source, whether a mode selects it.

    Where a node may be at any offset from the root, all have the same crossbar.
    """
    select = mode.loop.select
    sources = max(int(each.loop.select.max()) for each in program.modes) + 1
    of_variant = np.stack([(select == source).any(axis=0) for source in range(sources)], axis=-1)
    of_nodes = of_variant[program.variant_at if mode.by_offset else program.variant_of]
    if not program.by_offset:
        return of_nodes
    return np.broadcast_to(of_nodes.any(axis=0), of_nodes.shape)
