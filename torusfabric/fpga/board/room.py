"""Refusing what cannot fit onto a board, before any tool runs."""

from fractions import Fraction
from typing import TYPE_CHECKING

from ...collective import Collective
from ...topology import Topology
from .capacity import advice
from .catalogue import Board
from .devices import Device, device_of
from .limits import Misfit
from .needs import Needs, least_needs, needs_of

if TYPE_CHECKING:
    from ...rtl.fabric import Fabric

__all__ = ["check_fabric", "check_selection", "duration"]

#: Bits, most of them in flip-flops, that the tools get through in a minute, on a slow machine.
PER_MINUTE = 1500


def check_selection(
    board: Board, topology: Topology, collective: Collective, *, flits: int | None, width: int
) -> None:
    """See that a fabric may fit, before it is planned.

    Parameters
    ----------
    flits : int or None
        Of a message; None if that is left to the plan.
    width : int
        Bits of a flit.

    Raises
    ------
    Misfit
        If no fabric for it can fit.
    """
    device = device_of(board.make_platform())
    if device is not None:
        needs = least_needs(topology, collective, flits=flits or 1, width=width)
        _check(needs, device, board, topology)


def check_fabric(board: Board, fabric: "Fabric") -> None:
    """See that a fabric may fit: by what is known of the board, and by what it needs at least.

    Raises
    ------
    Misfit
        If it cannot fit.
    """
    limit = board.limit
    if limit and limit.excludes(fabric):
        raise Misfit(
            f"Fabric must fit into {board.name}, not be larger than what does: "
            f"{limit.describe(board.name)} (--force tries all the same)"
        )
    device = device_of(board.make_platform())
    if device is not None:
        _check(needs_of(fabric), device, board, fabric.program.topology)


def _check(needs: Needs, device: Device, board: Board, topology: Topology) -> None:
    """Compare what is needed with what there is."""
    amounts = (
        (needs.bits, device.bits, "bits of memory and registers"),
        (needs.flip_flops(device), device.flip_flops, "flip-flops"),
    )
    for needed, most, unit in amounts:
        if needed > most:
            raise Misfit(
                f"Fabric must fit into {board.name}, not need at least {needed} of {most} {unit}; "
                f"{advice(topology, Fraction(needed, most), board)}"
            )


def duration(board: Board, fabric: "Fabric") -> int:
    """Minutes that a build is expected to take, a rough guess for a slow machine."""
    device = device_of(board.make_platform())
    if device is None:
        return 1
    return 1 + min(needs_of(fabric).bits, device.flip_flops) // PER_MINUTE
