"""The protocol between the core and its adapters.

An *adapter* is a folder with one capability around the core. It declares its options, and has
parts, each a module or a package of a known name that is imported when it is asked for:

======== =================================== ==================================================
part     function                            result
======== =================================== ==================================================
make     make_system(make, choices)          the `System` of a core that ``make(**changes)`` makes
files    write(system, folder, ..)           a `Design`: the text, and the files beside it
drive    simulate(system, choices, ..)       a report: ``passed``, ``to_json``, ``in_words``
claims   prove(system, ..)                   a `Proof`
bridge   fit_board(board, choices)           the board with the clock that the adapter needs
         place_fabric(system, choices, ..)   the fabric for the pins of one board
         choose_fabrics(system, choices)     the fabric, or all fabrics, to be run over bridges
         link_fabrics(system)                all fabrics of a system, to be run together
         simulated_ports(fabrics)            ports of bridges that are simulated
         connect(fabrics, accesses, image)   all fabrics, connected
======== =================================== ==================================================

*Choices* are the values of all options of a command, by their attributes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar, NamedTuple

__all__ = ["Adapter", "Options", "System"]


class Options(NamedTuple):
    """Options that an adapter adds to some commands; the value of one that is left out is None.

    Parameters
    ----------
    commands : tuple of str
        The commands that have the options.
    text : str
        A line an option, ``--name METAVAR: what it is``, which may go on in indented lines.
        Options that need another one begin with ``with --other:``.
    values : mapping of str to (str or tuple of str)
        By attribute, how a value is read: ``real``, ``natural`` or ``positive``; or all values.
        Others are text.
    """

    commands: tuple[str, ...]
    text: str
    values: Mapping[str, str | tuple[str, ...]]


@dataclass(frozen=True)
class Adapter:
    """A capability around the core.

    Parameters
    ----------
    name : str
        The attribute of the option that asks for the adapter.
    title : str
        The heading of its options in the help.
    package : str
        The folder, as the name of a package.
    options : tuple of Options
        All options of the adapter.
    excluded : mapping of str to tuple of str
        The options of others that have no meaning with the adapter, as attributes: those of a
        command, or by an empty name those of all.
    """

    name: str
    title: str
    package: str
    options: tuple[Options, ...]
    excluded: Mapping[str, tuple[str, ...]]

    def part(self, name: str) -> Any:
        """Return a part, imported now."""
        return import_module(f"{self.package}.{name}")


class System:
    """A fabric, completed by an adapter: whatever one chip does not hold alone.

    Attributes
    ----------
    fabric : Fabric
        The same on one chip.
    """

    adapter: ClassVar[Adapter]
    fabric: Any

    @property
    def predicted_cycles(self) -> int:
        """Clock edges from the start to done of the longest run."""
        raise NotImplementedError

    def facts(self) -> dict[str, Any]:
        """Return what the adapter says of the system, as plain data."""
        raise NotImplementedError

    def facts_in_words(self) -> dict[str, str]:
        """Return the same for people."""
        raise NotImplementedError
