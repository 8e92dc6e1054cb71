"""Packets: how many a node sends, and receives, and what tells them apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..memories import address_width

if TYPE_CHECKING:
    from ...program import Program

__all__ = ["number_bits", "packet_counts"]


def packet_counts(program: Program, form: int) -> tuple[int, int]:
    """How many packets a node sends in a form, and how many it receives.

    One for each destination or offset, and from each origin or offset, or one.
    """
    blocks = program.part(form).schedule.blocks
    return blocks.goals, blocks.parts


def number_bits(program: Program) -> int:
    """Bits of the number of a packet: of a node, or of an offset."""
    counts = [max(packet_counts(program, form)) for form in range(len(program.forms))]
    return address_width(max(program.topology.nodes, *counts))
