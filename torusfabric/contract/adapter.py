"""The protocol between commands and adapters.

An *adapter* is a folder with one capability around the core. It declares its options, and has
parts. A part is a module or a package of a known name, which is imported when a command needs it.
An adapter has the part ``make``, and the parts of those commands that have its options:

======== ============================================================= ========================
part     function                                                      result
======== ============================================================= ========================
make     make_system(make, choices)                                    `System`
files    write(system, choices, folder, command, force)                `Design`
drive    simulate(system, choices, jobs, seed, progress)               report
claims   prove(system, cache, progress)                                `Proof`
bridge   fit_board(board, choices)                                     `Board`
         place_fabric(system, choices, platform)                       `Fabric`
         choose_fabrics(system, choices, built)                        one `Fabric` or several
         link_fabrics(system)                                          all `Fabric` of a system
         simulated_ports(fabrics)                                      ports of simulated bridges
         connect(fabrics, accesses)                                    all fabrics, connected
======== ============================================================= ========================

The function ``make(**changes)`` returns the core, perhaps with some other choices. An adapter whose
manifests have its name may have ``make.read_system(fabric, manifest)``: it returns the system of a
manifest with a fabric that holds other tables. *Choices* are the values of all options of a
command, by their attributes. The command ``verilog`` needs the part ``files``, ``simulate`` needs
``drive``, ``prove`` needs ``claims``; those that build a bitstream or reach a fabric over a bridge
need ``bridge``. A report of a simulation has ``passed``, ``to_json``, ``in_words``, and the counts
that `SimulationReport` has. A board is fitted with the clock of its fabric; a fabric is placed on
the pins of one platform.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar, NamedTuple

from .options import Option, options_of

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
    settings : mapping of str to object
        By attribute, the reader of an option that is not text, as of
        `torusfabric.contract.options.options_of`.
    """

    commands: tuple[str, ...]
    text: str
    settings: Mapping[str, Any]

    @property
    def declared(self) -> dict[str, Option]:
        """The options by their attributes."""
        return options_of(self.text, **self.settings)


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
        cycles: int = self.fabric.predicted_cycles
        return cycles

    def facts(self) -> dict[str, Any]:
        """Return what the adapter says of the system, as plain data."""
        return {}

    def facts_in_words(self) -> dict[str, Any]:
        """Return the same for people."""
        return self.facts()
