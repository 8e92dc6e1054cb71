"""What may be chosen of a fabric, and what of it goes together."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..errors import InputError
from ..program import Program
from ..toolchain.values import shown
from .fabric_builder import Top, is_direct
from .streams import Clocks

if TYPE_CHECKING:
    from ..program.frame import Frame
    from ..program.loadable import LoadableMode
    from .loaded.image import Image

__all__ = ["check_prefix", "check_top", "loaded_tables"]

#: The longest prefix of names of modules, and all prefixes.
MAX_PREFIX = 64
PREFIX = rf"([a-z_]\w{{0,{MAX_PREFIX - 1}}})?"


def check_prefix(prefix: str) -> None:
    """Check that the names of modules in Verilog can begin with a prefix.

    Raises
    ------
    InputError
        If they cannot.

    Examples
    --------
    >>> check_prefix("left_")
    >>> check_prefix("2nd_")
    Traceback (most recent call last):
    torusfabric.errors.InputError: Prefix must be a letter or _, then letters, digits and _, \
up to 64 in all, not '2nd_'
    """
    if not isinstance(prefix, str) or not re.fullmatch(PREFIX, prefix, re.ASCII | re.IGNORECASE):
        raise InputError(
            "Prefix must be a letter or _, then letters, digits and _, up to "
            f"{MAX_PREFIX} in all, not {prefix!r}"
        )


def check_top(
    program: Program, top: Top, *, bus: bool, clocks: Clocks, timeout: int, abort: bool
) -> None:
    """Check that a top is one for a program, and for what else is wanted.

    Raises
    ------
    InputError
        If it is not.
    """
    kind = program.schedule.collective.kind
    of_host = {
        "messages of any length": program.any_length,
        f"{kind} from any root": program.form.part_is_root,
        "several operators": len(program.operators) > 1,
    }
    for what, wanted in of_host.items():
        if wanted and top is Top.CORE:
            raise InputError(f"Top must be host for {what}, not core")
    if bus and top is Top.CORE:
        raise InputError("Top must be host or stream for a fabric behind a bus, not core")
    of_stream = {
        "a barrier": program.barrier,
        "clocks of the nodes": clocks is not Clocks.ONE,
        "a timeout of nodes": timeout > 0,
    }
    for what, wanted in of_stream.items():
        if wanted and top is not Top.STREAM:
            raise InputError(f"Top must be stream for {what}, not {top}")
    streams = top is Top.STREAM
    if abort and (streams or (top is Top.CORE and is_direct(program))):
        what = "streams of nodes" if streams else "nodes without memories"
        raise InputError(f"Abort must be left out for {what}, whose words cannot be taken back")


def loaded_tables(
    program: Program, tables: Frame | Image | str, top: Top, *, bus: bool, abort: bool
) -> tuple[Frame | None, Sequence[LoadableMode]]:
    """What may be loaded, and what is; nothing where tables are fixed.

    Raises
    ------
    InputError
        If tables are not loaded with the top, or with what else is wanted.
    """
    if tables == "rom":
        return None, ()
    if isinstance(tables, str) and tables != "ram":
        raise InputError(f"Tables must be rom or ram, not {shown(tables)}")
    if top is Top.CORE:
        raise InputError(f"Tables must be rom for a fabric with the top {top}, not ram")
    if top is Top.STREAM and bus:
        raise InputError("Bus must be left out for streams with loaded tables, not given")
    if abort:
        raise InputError("Tables must be rom for runs that are aborted, not ram")
    from ..program.fitting import loadable_modes  # a guest
    from ..program.frame import Frame
    from .loaded.image import Image

    streams = top is Top.STREAM
    given = tables.frame if isinstance(tables, Image) else tables
    frame = given if isinstance(given, Frame) else None
    if frame and frame.streams is not streams:
        of = "streams" if streams else "a host port"
        raise InputError(f"Tables must be those of a fabric with {of}, not another")
    if isinstance(tables, Image):
        return tables.frame, tables.modes
    modes = loadable_modes(program, frame)
    return frame or Frame.of(modes, streams=streams), modes
