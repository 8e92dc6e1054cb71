"""How a user says several collectives that make one fabric, and one of them: its modes.

Collectives are separated by commas, ``allgather,alltoall:necklace,allreduce@0``, and so are files.
A mode is named by its number, or by the word that selects it.
"""

import re
from argparse import Namespace
from collections.abc import Iterator
from functools import partial

from ..collective import parse_collective, split_name, split_names
from ..errors import InputError
from ..schedule.file import load
from ..toolchain.reading import listed_files
from ..topology import alike_links, shared_network
from .selection import Before, Chosen, choose_schedule

__all__ = ["choose_mode", "choose_schedules", "each_selection"]

#: More collectives in one fabric are not worth a try.
MOST_MODES = 1024


def choose_schedules(
    arguments: Namespace,
    *,
    any_root: bool = False,
    flits: int | None = None,
    any_length: bool = False,
    before: Before = lambda *_: None,
) -> tuple[Chosen, ...]:
    """As `choose_schedule`, of several collectives or files, separated by commas.

    Raises
    ------
    InputError
        If files are for different topologies, too.
    """
    each = each_selection(arguments)
    choose = partial(
        choose_schedule,
        any_root=any_root,
        flits=flits,
        any_length=any_length or len(each) > 1,
        before=before,
    )
    chosen = tuple(map(choose, each))
    shared_network(one.schedule.topology for one in chosen)
    return chosen


def choose_mode(
    arguments: Namespace, *, flits: int | None = None, before: Before = lambda *_: None
) -> Chosen:
    """As `choose_schedule`, of the one collective or file that ``--mode`` names.

    Raises
    ------
    InputError
        If there are several and none is named, or there is none of that name.
    """
    each = each_selection(arguments)
    # Of one that names neither a file nor a collective, choosing it says what to name.
    complete = getattr(arguments, "plan", None) is not None or arguments.collective is not None
    number = 0
    if len(each) > 1 or (arguments.mode is not None and complete):
        number = _mode_number(arguments.mode, [list(_names(one)) for one in each])
    return choose_schedule(each[number], flits=flits, before=before)


def each_selection(arguments: Namespace) -> list[Namespace]:
    """The arguments of each of the collectives or files; the root goes to those that have one.

    Raises
    ------
    InputError
        If there is an algorithm for all, or a root and no collective that has one.
    """
    path = getattr(arguments, "plan", None)
    name = "collective" if path is None else "plan"
    parts = split_names(arguments.collective or "") if path is None else listed_files(path)
    each = [Namespace(**vars(arguments) | {name: part}) for part in parts]
    if len(each) == 1:
        return [arguments]
    if path is None and "@" in arguments.collective:
        each = list(map(links_alike, each))
    if len(each) > MOST_MODES:
        raise InputError(f"Collectives of one fabric must be at most {MOST_MODES}, not {len(each)}")
    named = getattr(arguments, "algorithm", None)
    if path is None and named is not None:
        first = split_name(each[0].collective).collective
        raise InputError(
            f"--algorithm must be left out for several collectives, not {named}: write "
            f"{first}:{named}"
        )
    if arguments.root is None:
        return each
    for one in each:
        if path is None:
            collective = parse_collective(split_name(one.collective).collective)
        else:
            collective = load(one.plan).collective
        one.root = arguments.root if collective.rooted else None
    if all(one.root is None for one in each):
        raise InputError(
            f"--root must be left out where no collective has a root, not {arguments.root}"
        )
    return each


def links_alike(arguments: Namespace) -> Namespace:
    """The arguments with links as slow, along each axis, as the slowest there."""
    given = getattr(arguments, "link_latency", None)
    return Namespace(**vars(arguments) | alike_links(arguments.topology, given))


def _names(arguments: Namespace) -> Iterator[str]:
    """The names of a selection: the word that selects it, and the collective."""
    path = getattr(arguments, "plan", None)
    if path is not None:
        yield path
        yield load(path).collective.name
    else:
        yield arguments.collective
        yield split_name(arguments.collective).collective


def _mode_number(mode: str | None, names: list[list[str]]) -> int:
    """The number of the mode of some name."""
    if mode is not None and re.fullmatch(r"[0-9]{1,9}", mode) and int(mode) < len(names):
        return int(mode)
    # A word that selects one is sure, the name of its collective only if no other has it.
    for place in (0, 1):
        found = [number for number, name in enumerate(names) if name[place] == mode]
        if len(found) == 1:
            return found[0]
    known = ", ".join(name[0] for name in names)
    numbers = f"0 to {len(names) - 1}" if len(names) > 1 else "0"
    given = "left out (of several collectives one is shown)" if mode is None else repr(mode)
    raise InputError(f"--mode must be {numbers}, or one of {known}, not {given}")
