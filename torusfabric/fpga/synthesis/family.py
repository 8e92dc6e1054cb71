"""Families of devices: what is known of each."""

import enum
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from ...toolchain.hints import no_such
from .cost import Cost

__all__ = ["Family", "Mapping", "Recipe", "find_mapping"]


class Mapping(enum.Enum):
    """What the mapping to cells is for: few tables, or wide multiplexers where there are any."""

    COMPACT = "compact"
    FAST = "fast"


def find_mapping(name: str | Mapping) -> Mapping:
    """The mapping of a name.

    Raises
    ------
    InputError
        If there is none.
    """
    try:
        return Mapping(name)
    except ValueError:
        raise no_such("Mapping", name, [mapping.value for mapping in Mapping]) from None


@dataclass(frozen=True)
class Recipe:
    """How a mapping is carried out.

    Parameters
    ----------
    synth : str
        The yosys command.
    label : str
        Where it is interrupted, if it is.
    steps : tuple of str
        Commands to be carried out there.
    """

    synth: str
    label: str = ""
    steps: tuple[str, ...] = ()

    def script(self, top: str, more: str = "") -> str:
        """The yosys commands that map a module, given what to add to the first of them.

        Examples
        --------
        >>> print(Recipe("synth_ice40", "map_ffs", ("dffunmap",)).script("node"), end="")
        synth_ice40 -top node -run begin:map_ffs
        dffunmap
        synth_ice40 -top node -run map_ffs:
        """
        command = f"{self.synth}{more} -top {top}"
        lines = [command]
        if self.steps:
            lines = [
                f"{command} -run begin:{self.label}",
                *self.steps,
                f"{command} -run {self.label}:",
            ]
        return "".join(f"{line}\n" for line in lines)


@dataclass(frozen=True)
class Family:
    """Devices with the same cells and the same tools.

    Parameters
    ----------
    compact : Recipe
        The mapping to few cells.
    fast : Recipe
        The one for speed.
    cells : dict
        What a cell costs -> patterns of the types of such cells; others are unknown.
    pnr : str or None
        The place-and-route tool; None where only the vendor has one.
    pnr_args : tuple of str
        Its arguments: no pin constraints are needed, and slow paths are placed with care.
    placers : tuple of str
        The placers of that tool, where there is a choice: each is tried if the one before fails or
        is stuck.
    defines : tuple of str
        What is defined for the text to have the form that suits its cells.
    no_pads : str
        What to add to the yosys command for a module whose ports are not pins.
    inputs : int
        Of a table.
    logic_cells : function of (module) -> int, optional
        How many logic cells the tables and flip-flops of a module fill, from a netlist that yosys
        wrote as JSON, where the device has cells of both.
    block_shapes : tuple of (int, int)
        Words and bits that a block RAM may have, where a memory that is made of tables takes many.
    """

    compact: Recipe
    fast: Recipe
    cells: dict[Cost, str]
    pnr: str | None = None
    pnr_args: tuple[str, ...] = ()
    placers: tuple[str, ...] = ()
    defines: tuple[str, ...] = ()
    no_pads: str = ""
    inputs: int = 4
    logic_cells: Callable[[dict[str, Any]], int] | None = None
    block_shapes: tuple[tuple[int, int], ...] = ()

    def blocks(self, width: int, depth: int) -> int:
        """Block RAMs of a memory."""
        return min(-(-depth // words) * -(-width // bits) for words, bits in self.block_shapes)

    def recipe(self, mapping: Mapping) -> Recipe:
        """How a mapping is carried out."""
        return self.fast if mapping is Mapping.FAST else self.compact

    def price(self, kind: str) -> Cost | None:
        """What a cell of a type costs, or None if that is not known."""
        for price, patterns in self.cells.items():
            if any(fnmatchcase(kind, pattern) for pattern in patterns.split()):
                return price
        return None
