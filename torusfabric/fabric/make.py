"""Construction of a fabric from a `FabricSpec`: plan, check, compile, build, and apply an adapter.

`make_fabric` builds the fabric on one chip, and `make_with_adapter` lets an adapter complete that
fabric. `FabricSpec.make`, and through it all commands that need hardware, call these two.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from ..analysis.facts import merge_facts, schedule_facts
from ..collective import Operator, split_names
from ..errors import InputError
from ..planning import compile, require_hardware_memory
from ..rtl.fabric import check_prefix
from ..toolchain.progress import progress_bar
from ..topology import Topology, extra_faults, shared_network
from .choose import (
    ModeChoice,
    PlanPurpose,
    choose_schedules,
    operators_of_spec,
)
from .fabric import Fabric

if TYPE_CHECKING:
    from ..adapters.loading.room import Room
    from ..contract.adapter import Adapter, System
    from ..program import Mode, Program
    from .spec import FabricSpec

__all__ = ["BuiltFabric", "make_with_adapter", "make_fabric"]

#: The word for a barrier in a list of collectives. A barrier needs no schedule, so it is removed
#: from the list, and becomes a choice of the stream top.
BARRIER = "barrier"

#: Choices that are left out of the decided ones, because the topology or the algorithm of a built
#: fabric contains them.
ABSORBED_CHOICES = (
    "broken_link", "broken_links", "broken_node", "rate", "relay", "objective", "costs",
)  # fmt: skip


class BuiltFabric(NamedTuple):
    """A built fabric with the schedules that it executes.

    Parameters
    ----------
    fabric : Fabric
        The fabric on one chip.
    facts : dict
        Facts of the checked schedule, such as its rounds; those of several modes are a list under
        ``modes``.
    chosen : tuple of ModeChoice
        Schedule and selection of each mode.
    spec : FabricSpec
        The choices of the user.
    system : System or None
        The fabric, completed by an adapter; None if the user selected no adapter.
    """

    fabric: Any
    facts: dict[str, Any]
    chosen: tuple[ModeChoice, ...]
    spec: FabricSpec
    system: System | None = None

    def decided_choices(self) -> dict[str, Any]:
        """Return the choices of the user with all that was left open decided, keyed by name.

        An example is the algorithm that was selected. A `FabricSpec` with these values makes the
        same fabric again, without a selection of algorithms. The value None stands for the default
        of a choice.
        """
        first, *others = self.chosen
        spec = self.spec
        length = "flits" if spec.max_flits is None else "max_flits"
        decided = dict.fromkeys(ABSORBED_CHOICES) | {
            "barrier": spec.barrier,
            "top": spec.top,
            "width": spec.width,
            length: self.fabric.flits,
        }
        if first.selection is None:
            return decided
        network = shared_network(one.schedule.topology for one in self.chosen)
        latency = network.latency_text if network.link_latency != 1 else None
        decided |= {"topology": str(network), "link_latency": latency}
        if others:
            names = (_mode_word(one, network) for one in self.chosen)
            return decided | {"collective": ",".join(names)}
        selection, options = first.selection, first.selection.options
        algorithm, chosen = selection.algorithm, options.given()
        decided |= {"collective": first.name, "algorithm": algorithm and algorithm.name}
        decided |= {
            name: value if name in chosen else None for name, value in vars(options).items()
        }
        return decided | ({"latency": "auto"} if selection.any_latency else {})


def _mode_word(one: ModeChoice, network: Topology) -> str:
    """Return the word that selects a mode on a command line, such as ``alltoall:necklace!0:+1``.

    It has the collective of the mode `one`, its algorithm, and the faults of the mode alone: those
    that `network`, the topology of the whole fabric, does not have. If the algorithm was selected
    together with options, the word leaves it out, because options on a command line hold for all
    modes.
    """
    again, asked = one.selection, one.asked
    assert again is not None
    assert asked is not None
    as_asked = again.options == asked.options and not asked.any_latency
    algorithm = again.algorithm if as_asked else asked.algorithm
    named = f":{algorithm.name}" if algorithm else ""
    return f"{one.name}{named}{extra_faults(network, one.schedule.topology)}"


def make_with_adapter(spec: FabricSpec, adapter: Adapter) -> BuiltFabric:
    """Make the fabric of a user's choices, and complete it by an adapter.

    Parameters
    ----------
    spec : FabricSpec
        The choices of the user.
    adapter : Adapter
        The adapter that the choices select. It may make the fabric several times with other
        choices; the last fabric is returned.

    Returns
    -------
    BuiltFabric
        The fabric, with the system of the adapter in `system`.

    Raises
    ------
    InputError
        If a choice is unknown, does not fit the others, or cannot be built.
    """
    made: list[BuiltFabric] = []

    def make_with(**changes: object) -> Any:
        """Make a fabric, with `changes` in place of some choices; append it to the list `made`."""
        made.append(make_fabric(spec.replace(**changes)))
        return made[-1].fabric

    system = adapter.import_part("make").make_system(make_with, spec.values())
    return made[-1]._replace(system=system)


def make_fabric(spec: FabricSpec, *, runs: int = 0) -> BuiltFabric:
    """Make the fabric of a user's choices on one chip, without an adapter.

    Parameters
    ----------
    spec : FabricSpec
        The choices of the user.
    runs : int
        Number of runs that will be simulated, 0 if unknown. Each needs memory of the machine, which
        is checked before a schedule is planned.

    Raises
    ------
    InputError
        If a choice is unknown, does not fit the others, or cannot be built.
    """
    names = split_names(spec.collective or "")
    if BARRIER in names:
        others = [name for name in names if name != BARRIER]
        if not others:
            raise InputError(
                "A barrier needs another collective in the same fabric, for example "
                "allgather,barrier"
            )
        spec = spec.replace(collective=",".join(others), barrier=True)
    check_prefix(spec.prefix)
    _check_tables(spec)
    flits = spec.max_flits or spec.flits
    purpose = PlanPurpose(
        flits,
        any_length=spec.max_flits is not None,
        with_forms=True,
        any_root=True,
        # Checked before a mode is planned, because planning of a network that is too large to be
        # built takes long.
        before=partial(require_hardware_memory, flits=flits, runs=runs),
    )
    chosen = choose_schedules(spec, purpose)
    schedules = [one.schedule for one in chosen]
    operators = operators_of_spec(spec, (schedule.collective for schedule in schedules))
    found = []
    for one in chosen:
        with progress_bar("checking") as progress:
            *_, facts = (
                schedule_facts(schedule, progress, operators, flits=flits)
                for schedule in one.forms or (one.schedule,)
            )
        found.append(facts | ({"why": one.why} if one.why else {}))
    with progress_bar("compiling"):
        fabric = _compile_fabric(spec, chosen, operators)
    found = [
        facts | _form_facts(mode) for facts, mode in zip(found, fabric.program.modes, strict=True)
    ]
    return BuiltFabric(fabric, merge_facts(found), chosen, spec)


def _check_tables(spec: FabricSpec) -> None:
    """Check the choices for loadable tables: that they are complete, and of possible sizes.

    `spec` has all choices of the user.
    """
    if spec.tables == "ram":
        from ..adapters.loading.room import require_room_size

        if spec.max_flits is None:
            raise InputError("--tables ram needs --max-flits L, the flits of the longest message")
        require_room_size(spec.rows, spec.depth)


def _form_facts(mode: Mode) -> dict[str, Any]:
    """Return a mode's forms as plain data, under the key ``forms``; {} for a mode with one form.

    Each entry of the list has the shortest message length of the form in flits (``from``), its
    algorithm, chunks and rounds.
    """
    if not mode.has_several_ranges:
        return {}
    schedules = {number: mode.form_at(number).schedule for number in mode.first_starts}
    return {
        "forms": [
            {
                "from": start,
                "algorithm": schedules[number].algorithm,
                "chunks": schedules[number].chunks,
                "rounds": schedules[number].round_count,
            }
            for number, start in mode.first_starts.items()
        ]
    }


def _compile_fabric(
    spec: FabricSpec, chosen: tuple[ModeChoice, ...], operators: tuple[Operator, ...]
) -> Fabric:
    """Compile the schedules to a program, and build its fabric.

    `spec` has the choices about the hardware, `chosen` the schedules of each mode, and `operators`
    the operators of the reductions.
    """
    program = compile(
        [one.schedules_to_compile for one in chosen]
        if len(chosen) > 1 or chosen[0].forms
        else chosen[0].schedule,
        flits=spec.flits,
        max_flits=spec.max_flits,
        operators=operators,
        root=next((one.root for one in chosen if one.root), None),
        barrier=spec.barrier,
    )
    names = ("width", "top", "prefix", "bus", "clocks", "beat", "timeout")
    how = {name: getattr(spec, name) for name in names}
    if spec.tables == "ram":
        how["tables"] = _image_limits(spec, program)
    return Fabric(program, **how)


def _image_limits(spec: FabricSpec, program: Program) -> Room:
    """Return the sizes of the loadable tables of a fabric; an image must not exceed them.

    `spec` has the choices about the tables. The tables have room for `program`, and out-ports can
    select the inputs that it needs. With ``--inputs all`` they can select every input; with
    ``--inputs COLLECTIVE,..`` also those that schedules of these collectives need.
    """
    from ..adapters.loading.fitting import choose_beat, loadable_form, loadable_modes
    from ..adapters.loading.room import room_for

    streams = spec.top == "stream"
    beat = choose_beat(program, spec.width, spec.beat, streams=streams)
    others: list[Program] | None = None
    if spec.inputs != "all":
        flits = program.flits
        listed = spec.replace(collective=spec.inputs, plan=None, root=None)
        every = choose_schedules(listed, PlanPurpose(flits, any_length=True)) if spec.inputs else ()
        forms = (loadable_form(one.schedule, flits, program.operators, beat=beat) for one in every)
        others = [form.program for form in forms]
    return room_for(
        loadable_modes(program, beat=beat),
        inputs=others,
        streams=streams,
        rows=spec.rows,
        depth=spec.depth,
    )
