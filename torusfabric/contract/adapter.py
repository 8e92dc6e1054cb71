"""The protocol between the commands and the adapters.

An *adapter* is a folder that adds one capability around the core, such as links to other chips. It
declares command-line options and consists of *parts*: modules or packages with fixed names. A
command imports a part when it needs one. Every adapter has the part ``make``. The other parts
belong to commands, and an adapter has those parts whose commands take its options:

- ``files`` belongs to ``verilog``,
- ``drive`` belongs to ``simulate``,
- ``claims`` belongs to ``prove``,
- ``bridge`` belongs to commands that build a bitstream or reach a fabric over a bridge.

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

- ``make(**changes)``, the first parameter of ``make_system``, returns the fabric on one chip.
  Keywords replace choices of the user.
- The *attribute* of an option is its name as a keyword of Python: ``link_latency`` for
  ``--link-latency``. ``choices`` maps the attribute of each option of the command to its value.
- ``fit_board`` returns the board with the clock that the fabric needs. ``place_fabric`` connects a
  fabric to the pins of a platform.
- The report of ``simulate`` has ``passed``, ``to_json``, ``in_words``, and the counts of
  `SimulationReport`.

The part ``make`` may also have ``read_system(fabric, manifest)``. The function returns a `System`
that contains the given fabric, and that has in all else the properties which the manifest states.
It is called for each manifest that has the adapter's name as a key.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar, NamedTuple

from .options import Option, options_of

__all__ = ["Adapter", "AdapterOptions", "System"]


class AdapterOptions(NamedTuple):
    """Command-line options that an adapter adds to some commands.

    If a user leaves an option out, its value is None.

    Parameters
    ----------
    commands : tuple of str
        Names of the commands that take the options.
    text : str
        Declarations, one line for each option: ``--name METAVAR: explanation``. Indented lines
        continue an explanation. An explanation that begins with ``with --other:`` makes the option
        depend on ``--other``.
    settings : mapping of str to object
        For the attribute of an option (``link_latency`` for ``--link-latency``), the function that
        reads its value, as `torusfabric.contract.options.options_of` takes it. The value of an
        option without an entry is text.
    """

    commands: tuple[str, ...]
    text: str
    settings: Mapping[str, Any]

    @property
    def by_attribute(self) -> dict[str, Option]:
        """The options that `text` declares; the key for ``--link-latency`` is ``link_latency``."""
        return options_of(self.text, **self.settings)


@dataclass(frozen=True)
class Adapter:
    """The declaration of an adapter, from which commands learn that it exists.

    Parameters
    ----------
    name : str
        Attribute of the option by which a user asks for the adapter: ``link_latency`` for
        ``--link-latency``.
    title : str
        Heading above the options of the adapter in the help.
    package : str
        Dotted name of the adapter's folder, a package.
    options : tuple of AdapterOptions
        All options of the adapter.
    excluded : mapping of str to tuple of str
        Options that a user must not combine with the adapter. A key is the name of a command, or
        the empty text for all commands. The value names the attributes of the options.
    """

    name: str
    title: str
    package: str
    options: tuple[AdapterOptions, ...]
    excluded: Mapping[str, tuple[str, ...]]

    def import_part(self, name: str) -> Any:
        """Import one part of the adapter, a module or package in its folder, and return it.

        Parameters
        ----------
        name : str
            Name of the part, such as ``make``, which builds systems, or ``files``, which writes
            them.
        """
        return import_module(f"{self.package}.{name}")


class System:
    """A fabric together with the circuits of an adapter, such as one spread over several chips.

    Attributes
    ----------
    adapter : Adapter
        The adapter that made the system; a class attribute of each subclass.
    fabric : Fabric
        The same fabric on a single chip, without the adapter.
    """

    adapter: ClassVar[Adapter]
    fabric: Any

    @property
    def predicted_cycles(self) -> int:
        """Clock cycles of the longest run, from the clock edge that samples `start` to `done`."""
        cycles: int = self.fabric.predicted_cycles
        return cycles

    def facts(self) -> dict[str, Any]:
        """Return the properties of the system that the adapter decides, as entries of JSON."""
        return {}

    def facts_text(self) -> dict[str, Any]:
        """Return the properties of `facts`, with values written for a report that people read.

        By default the result of `facts` is returned unchanged.
        """
        return self.facts()
