"""Facts about a checked schedule: steps, bounds, times and traffic, as values and as text."""

from collections.abc import Mapping, Sequence
from typing import Any

from ..collective import Operator
from ..errors import InputError
from ..schedule import Schedule, Switching
from ..toolchain.public import public
from ..topology import Faulty, node_ranges
from .bounds import find_bound
from .check import Progress, check
from .cost import schedule_cost, step_length
from .volume import cycle_limit, least_time, limiting_cut_text

__all__ = ["bound_text", "merge_facts", "forms_text", "facts_text", "require_message_length",
           "schedule_facts", "steps_text"]  # fmt: skip

#: The longest message, in flits, for which a cycle limit is computed.
MOST_FLITS = 2**32

#: The result of a successful check.
_CHECKED_TEXT = "every block reaches every node that must hold it, and no arc is used twice"


def require_message_length(flits: int) -> None:
    """Raise an error unless `flits`, the number of flits of a message, is in the allowed range."""
    if flits < 1:
        raise InputError(f"Flits must be at least 1, not {flits}")
    if flits > MOST_FLITS:
        raise InputError(f"Flits must be at most {MOST_FLITS}, not {flits}")


@public
def schedule_facts(
    schedule: Schedule,
    progress: Progress | None = None,
    operators: Sequence[Operator] = (),
    *,
    flits: int | None = None,
) -> dict[str, Any]:
    """Check a schedule and measure it.

    Parameters
    ----------
    progress : function of (done, total), optional
        As for `check`.
    operators : sequence of Operator
        The operators of a reduction, see `check`.
    flits : int, optional
        Flits of a message; by default one for each chunk.

    Returns
    -------
    dict
        Numbers and texts by name. ``rounds`` is the number of rounds, and ``bound`` the bound on
        it. ``unit`` is the unit of ``rounds`` and ``bound``, such as "steps of 1/2 message".
        ``bound_where`` is the restriction of the bound, empty if it holds for all schedules.
        ``delta`` counts hops. ``tau`` and ``tau_bound`` are message times (`Fraction`), which
        compare schedules whose steps have different lengths. ``stream`` is the part of a message
        that each arc carries, if flits stream through trees, see `stream_time`. ``limit`` is the
        cycle limit: no hardware takes fewer cycles for messages of ``limit_flits`` flits, see
        `torusfabric.analysis.volume.cycle_limit`. On networks that do not look the same from each
        node, ``cut`` describes the cut that determines ``tau_bound``, and ``renumbered`` lists
        nodes whose number differs from the whole network. ``rates`` says how far apart messages on
        links with rates below 1 are. ``relays`` lists the nodes that only relay. On a graph whose
        nodes have labels, and beside relays, ``root`` is the node that is the root of a single
        group.

    Raises
    ------
    InputError
        If the number of flits is out of range.
    ScheduleError
        If the schedule has a fault.
    """
    if flits is not None:
        require_message_length(flits)
    traffic = check(schedule, operators=operators, progress=progress)
    cost = schedule_cost(schedule, traffic)
    least = find_bound(schedule, traffic)
    length = flits or schedule.collective.listed_flits or schedule.chunks
    topology = schedule.topology
    network: dict[str, str] = {}
    if cut := limiting_cut_text(topology, schedule.collective):
        network["cut"] = cut
    if topology.spacing_multiple > 1:
        slow = [n for n in topology.spacing_of_arc[topology.linked].tolist() if n > 1]
        apart = " or ".join(map(str, sorted({*slow})))
        network["rates"] = f"{len(slow)} arcs carry a message at most every {apart} steps"
    if schedule.collective.root is not None:
        root, *others = schedule.collective.groups(topology).members[:, schedule.collective.root]
        if not others and (topology.has_label(int(root)) or topology.relays):
            network["root"] = f"node {root} {topology.node_name(int(root))}"
    if topology.relays:
        network["relays"] = ", ".join(node_ranges(topology.relays))
    if isinstance(topology, Faulty) and topology.broken_nodes:
        network["renumbered"] = topology.renumbered or "none"
    return {
        "topology": str(topology),
        "nodes": topology.nodes,
        **({} if topology.link_latency == 1 else {"link_latency": topology.latency_text}),
        "collective": str(schedule.collective),
        "algorithm": schedule.algorithm,
        "switching": schedule.switching,
        "ports": schedule.ports,
        "chunks": schedule.chunks,
        "duplex": schedule.duplex,
        "rounds": schedule.round_count,
        "unit": f"{schedule.switching.unit}s of {step_length(schedule, traffic)}",
        "bound": least.rounds,
        "bound_where": least.where,
        "limit": cycle_limit(topology, schedule.collective, length),
        "limit_flits": length,
        "delta": cost.delta,
        "message_times": cost.tau,
        "tau": cost.tau,
        **({} if cost.stream is None else {"stream": cost.stream}),
        "tau_bound": least_time(
            topology,
            schedule.collective,
            switching=schedule.switching,
            ports=schedule.ports,
            duplex=schedule.duplex,
        ),
        "transfers": cost.transfers,
        "checked": True,
        **network,
    }


def merge_facts(found: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the facts of a fabric with several modes, given the facts of each mode's schedule.

    Parameters
    ----------
    found : sequence of dict
        Results of `schedule_facts` on one topology, or on one topology with different broken links
        and nodes.

    Returns
    -------
    dict
        For a single schedule, its facts. For several schedules: the facts of the network, the sums
        of ``rounds`` and ``bound``, and under ``modes`` a list with the other facts of each.
    """
    if len(found) == 1:
        return found[0]
    if len({facts["topology"] for facts in found}) > 1:
        found = _move_faults_to_modes(found)
    common = [name for name in ("topology", "nodes", "link_latency") if name in found[0]]
    return {
        **{name: found[0][name] for name in common},
        "collective": ",".join(facts["collective"] for facts in found),
        "algorithm": ",".join(facts["algorithm"] for facts in found),
        "rounds": sum(facts["rounds"] for facts in found),
        "bound": sum(facts["bound"] for facts in found),
        "modes": [
            {name: value for name, value in facts.items() if name not in common} for facts in found
        ],
    }


def _move_faults_to_modes(found: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the facts of modes, with the same topology in all of them.

    `found` has the facts of each mode, as `schedule_facts` returns them. A broken link or node
    that only some modes have is moved from the name of the topology to that of the collective:
    ``4x4!5`` and ``allgather`` become ``4x4`` and ``allgather!5``. Faults of all modes, and slow
    links, stay with the topology.
    """
    names = [facts["topology"].rpartition("!") for facts in found]
    faults = [words.split(",") if whole else [] for whole, _, words in names]
    slow = [word for each in faults for word in each if "=" in word]  # in any mode
    common = [word for word in faults[0] if all(word in each for each in faults)]
    common = list(dict.fromkeys(common + slow))
    network = "!".join([names[0][0] or names[0][2], *([",".join(common)] if common else [])])
    changed = []
    for facts, each in zip(found, faults, strict=True):
        own = ",".join(word for word in each if word not in common)
        named = facts["collective"] + (f"!{own}" if own else "")
        changed.append({**facts, "topology": network, "collective": named})
    return changed


def facts_text(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return facts as a dict of texts for people, such as ``"steps"`` -> ``"10 of 1 message"``.

    Parameters
    ----------
    facts : dict
        The result of `schedule_facts`, perhaps with additional facts.

    Examples
    --------
    >>> import torusfabric as tf
    >>> words = facts_text(schedule_facts(tf.plan("6x6", "allgather", algorithm="bufferless")))
    >>> words["steps"], words["bound"]
    ('10 of 1 message', '10 of 1 message, where no block rests')
    >>> words["message times"]
    '10; no schedule takes less than 35/4'
    """
    if "modes" in facts:
        return _modes_text(facts)
    steps, _, length = facts["unit"].partition(" of ")
    longest = "any length"  # with circuit switching, the length of a message has no limit
    if facts["switching"] == Switching.STORE_AND_FORWARD:
        longest = length if " to " not in length else f"up to {length.partition(' to ')[2]}"
    words = {
        "rounds": f"{facts['rounds']} of {length}",
        "bound": f"{facts['bound']} of {longest}{_restriction_text(facts)}",
        "limit": f"{facts['limit']} cycles for messages of {facts['limit_flits']} "
        f"flit{'s' * (facts['limit_flits'] != 1)}",
        "delta": f"{facts['delta']} hop{'s' * (facts['delta'] != 1)}",
        "message_times": f"{facts['tau']}; no schedule takes less than {facts['tau_bound']}",
    }
    if "stream" in facts:
        words["stream"] = f"{facts['stream']} message times where flits stream through the trees"
    if facts.get("checked"):
        words["checked"] = _CHECKED_TEXT
    if "forms" in facts:
        words["forms"] = forms_text(facts["forms"])
    if "links" in facts:
        words["links"] = _links_text(facts["links"], steps)
    hidden = ("unit", "bound_where", "tau", "tau_bound", "limit_flits")
    shown = {name: value for name, value in {**facts, **words}.items() if name not in hidden}
    titles = {"rounds": steps, "limit": "cycle limit", "message_times": "message times"}
    return {titles.get(name, name): value for name, value in shown.items()}


def _links_text(links: Mapping[str, Any], steps: str) -> str:
    """Return one line about the use of links: the share of time, unused arcs, and idle rounds.

    `links` is the result of `LinkUse.to_json`. `steps` is the word for rounds, such as ``steps``.
    """
    parts = [f"{100 * links['use']:.1f} % of their time used"]
    if links["unused"]:
        parts.append(f"{links['unused']} of {links['arcs']} arcs never")
    rounds = links["by_round"]
    if rounds and min(rounds) < links["arcs"]:
        least = min(range(len(rounds)), key=rounds.__getitem__)
        idle = links["arcs"] - rounds[least]
        parts.append(f"most idle in {steps.removesuffix('s')} {least + 1}: {idle} arcs")
    return ", ".join(parts)


def forms_text(forms: Sequence[Mapping[str, Any]]) -> str:
    """Return one line with the algorithm of each form of a mode, and the lengths it is used for.

    Parameters
    ----------
    forms : sequence of mapping
        For each form, the name of its ``algorithm`` and, as ``from``, the length of the shortest
        message for which it is used, in flits.

    Examples
    --------
    >>> forms_text([{"from": 1, "algorithm": "a"}, {"from": 9, "algorithm": "b"}])
    'a from 1 flit, b from 9'
    """
    first, *others = (f"{form['algorithm']} from {form['from']}" for form in forms)
    return ", ".join([f"{first} flit", *others])


def steps_text(facts: Mapping[str, Any]) -> str:
    """Return text about the number and the length of steps, from the result of `schedule_facts`.

    Parameters
    ----------
    facts : mapping
        The result of `schedule_facts`, of which ``rounds`` and ``unit`` are used.

    Examples
    --------
    >>> steps_text({"rounds": 1, "unit": "steps of 1/2 message"})
    '1 step of 1/2 message'
    """
    steps, _, length = facts["unit"].partition(" of ")
    name = steps.removesuffix("s") if facts["rounds"] == 1 else steps
    return f"{facts['rounds']} {name} of {length}"


def bound_text(facts: Mapping[str, Any]) -> str:
    """Return text about the bound and its restriction, from the result of `schedule_facts`.

    Parameters
    ----------
    facts : mapping
        The result of `schedule_facts`, of which ``bound`` and ``bound_where`` are used.

    Examples
    --------
    >>> bound_text({"bound": 10, "bound_where": "no block rests"})
    'bound 10, where no block rests'
    """
    return f"bound {facts['bound']}{_restriction_text(facts)}"


def _restriction_text(facts: Mapping[str, Any]) -> str:
    """Return the restriction of the bound in `facts`, for use behind the bound.

    It is, for example, ``, where no block rests``, and empty if there is no restriction.
    """
    return f", where {facts['bound_where']}" if facts["bound_where"] else ""


def _modes_text(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts of several modes as a dict of texts, with one entry for each mode.

    The key of an entry is, for example, ``mode 0``. The facts of the network are other entries.
    """
    words = {name: value for name, value in facts.items() if name != "modes"}
    for name in ("collective", "algorithm", "rounds", "bound"):
        words.pop(name, None)
    for number, mode in enumerate(facts["modes"]):
        parts = [steps_text(mode), bound_text(mode)]
        if "forms" in mode:
            parts.append(forms_text(mode["forms"]))
        if "links" in mode:
            parts.append(f"{100 * mode['links']['use']:.1f} % of the links' time used")
        if "file" in mode:
            parts.append(f"in {mode['file']}")
        words[f"mode {number}"] = f"{mode['collective']} by {mode['algorithm']}: {', '.join(parts)}"
    if all(mode.get("checked") for mode in facts["modes"]):
        words["checked"] = _CHECKED_TEXT
    return words
