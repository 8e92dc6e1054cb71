"""Crossbars: how out-ports, and operators, select from the words of a node."""

from __future__ import annotations

from typing import NamedTuple

from ...program.fields import Action
from .families import Family, find_uses, group_kinds
from .kinds import NodeKinds
from .part import Choice, is_branched, plan_choice
from .places import BitPlacer, Columns, MemberDelays
from .rows import Rows

__all__ = ["Crossbar", "plan_crossbars"]


class Crossbar(NamedTuple):
    """The multiplexers of the modules of a family.

    Parameters
    ----------
    choices : tuple of (Choice or None)
        One for each port; None where nothing is selected.
    """

    family: Family
    choices: tuple[Choice | None, ...]
    placer: BitPlacer


def plan_crossbars(
    rows: Rows, kinds: NodeKinds, columns: Columns, action: Action, *, idles: bool, fast: bool
) -> list[Crossbar]:
    """Plan the crossbars of all kinds of nodes.

    Parameters
    ----------
    action : Action
        `SELECT` for out-ports, `OPERAND` for operators.
    idles : bool
        True if the word that changes nothing is 0.
    fast : bool
        True if all multiplexers have branches, whatever these cost.
    """
    sources, ports = rows.loops[0].sources, range(rows.program.ports)
    fields = {port: field for port in ports if (field := rows.field(action, port))}
    uses = find_uses(sources, kinds, ((port, field.values) for port, field in fields.items()))
    found = []
    for members in group_kinds([uses.signature]):
        words = [uses.words(int(members[0]), port) for port in ports]
        counts, family = list(map(len, words)), uses.family(members)
        branched = [True] * len(ports)
        if not fast:
            branched = is_branched(counts, family.sources.shape[1] - family.arriving)
        placer = BitPlacer(columns, many=kinds.are_many(members))
        choices: list[Choice | None] = []
        for port in ports:
            if not words[port]:
                choices.append(None)
                continue
            field = fields[port]
            given, codes = plan_choice(words[port], idles=idles, branched=branched[port])
            index = uses.inputs(port, members, kinds.values(field.values, members))
            delays = MemberDelays.alike(field.delays, len(members))
            bits = placer.code(index, codes, delays, alike=field.agrees)
            choices.append(Choice(given, bits, branched[port], idles=len(codes) > len(given)))
        found.append(Crossbar(family, tuple(choices), placer))
    return found
