"""The cost of faults: cycles and hardware of a network without faults, with each, and with all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..analysis.facts import schedule_facts
from ..collective import Collective
from ..planning import Selection, plan_selection, resolve
from ..program.counts import estimate_luts
from ..topology import Faulty, Topology, with_relays

if TYPE_CHECKING:
    from .compare import HardwareSettings

__all__ = ["fault_costs"]


def fault_costs(
    selection: Selection,
    hardware: HardwareSettings,
    *,
    progress: Callable[[int, int, str], object] = lambda *_: None,
) -> list[dict[str, Any]]:
    """Plan a collective without faults, with each fault alone, and with all faults.

    On each network the algorithm of the selection is used if it is suitable there; otherwise the
    best suitable one, as ``torusfabric plan`` chooses it.

    Parameters
    ----------
    selection : Selection
        A selection on a network with faults.
    hardware : HardwareSettings
        Width, lengths and target of the hardware.
    progress : function of (done, total, text)
        Called before each network.

    Returns
    -------
    list of dict
        One entry for each network; empty for a network without faults. ``faults`` is the user's
        text for the faults, ``""`` for none. ``algorithm``, ``rounds``, ``unit``, ``message_times``
        and ``tau`` describe the schedule, see `schedule_facts`. ``cycles`` counts from start to
        done. ``node_luts`` are the mean LUTs of a node, synthesized for the target or else
        estimated.

    Examples
    --------
    With a broken link, the all-gather takes three rounds in place of two.

    >>> from torusfabric.planning import make_selection
    >>> from torusfabric.sweep.compare import HardwareSettings
    >>> found = fault_costs(make_selection("3x3!0:+0", "allgather"), HardwareSettings(flits=2))
    >>> [(one["faults"], one["rounds"]) for one in found]
    [('', 2), ('0:+0', 3)]
    """
    if not isinstance(selection.topology, Faulty):
        return []
    each = [*_fault_networks(selection.topology)]
    if each[0] == selection.topology:
        return []
    found = []
    for done, network in enumerate(each):
        progress(done, len(each), f"planning {network}")
        found.append(_network_cost(selection, network, hardware))
    return found


def _fault_networks(faulty: Faulty) -> Iterator[Topology]:
    """Yield the networks to compare: without faults, with each fault alone, and with all.

    `faulty` is the network with all faults, broken or slow. With a single fault, the network with
    this fault is yielded once. Relays are no faults, and all networks have them.
    """
    whole = with_relays(faulty.whole, faulty.added_relays)
    yield whole
    alone = [Faulty(whole, [link], []) for link in faulty.broken_links]
    alone += [Faulty(whole, [], [node]) for node in faulty.broken_nodes]
    alone += [Faulty(whole, [], [], [link]) for link in faulty.slow_links]
    yield from alone if len(alone) > 1 else ()
    yield faulty


def _network_cost(
    selection: Selection, network: Topology, hardware: HardwareSettings
) -> dict[str, Any]:
    """Plan and compile the collective on one network; return its entry of `fault_costs`.

    The algorithm of `selection` is used if it is suitable for this network. `hardware` has the
    length of a message, and the device if the LUTs come from synthesis.
    """
    collective = _collective_on_network(selection, network)
    asked = replace(selection, topology=network, collective=collective)
    algorithm = selection.algorithm
    if algorithm and algorithm.why_not(network, collective, selection.options) is not None:
        asked = replace(asked, algorithm=None)
    any_length = bool(hardware.max_flits)
    schedule = plan_selection(resolve(asked, flits=hardware.longest_flits, any_length=any_length))
    facts, program = schedule_facts(schedule), hardware.compile_program(schedule)
    if hardware.targets:
        luts = hardware.fabric_costs(program)["node_luts"]
    else:
        luts = estimate_luts(program, width=hardware.width)
    return {
        "faults": network.faults if isinstance(network, Faulty) else "",
        **{name: facts[name] for name in ("algorithm", "rounds", "unit", "message_times", "tau")},
        "cycles": program.cycles(),
        "node_luts": luts,
    }


def _collective_on_network(selection: Selection, network: Topology) -> Collective:
    """Return the collective of `selection` for another network, with the same root and members.

    Nodes may have other numbers there, because node numbers leave out broken nodes.
    """
    collective, faulty = selection.collective, selection.topology
    assert isinstance(faulty, Faulty)
    number = faulty.kept
    if isinstance(network, Faulty):
        number = np.searchsorted(network.kept, number)
    if collective.members:
        members = tuple(tuple(number[[*group]].tolist()) for group in collective.members)
        return replace(collective, members=members)
    if collective.root is None or collective.axes is not None:
        return collective
    return replace(collective, root=int(number[collective.root]))
