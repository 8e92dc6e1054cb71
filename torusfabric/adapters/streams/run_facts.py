"""`RunFacts`: the widths of the choices of commands (form, root) at loaders and unloaders.

At most two messages are pending at a loader, one with an even and one with an odd number. Each
input of a loader therefore has two fields, selected by the lowest bit of the message number. Each
input of an unloader has one field for each section of the memories.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from amaranth.lib import data

from .sections import Sections

__all__ = ["RunFacts"]


@dataclass(frozen=True)
class RunFacts:
    """Widths of the choices for a run, and of the facts that nodes derive from them.

    Parameters
    ----------
    commanded : bool
        True if the fabric has a command stream.
    form_bits, root_bits : int
        Bits of a form, and of a root; 0 if runs have no choice.
    position_bits : int
        Bits of the position of a node in its group.
    sections : Sections
        Division of the memories.
    looked_up : dict of str to data.StructLayout
        With loadable tables, the facts about a run that a node looks up, under ``load`` and
        ``unload``. Empty with fixed tables: engines then have constants for each form.
    """

    commanded: bool
    form_bits: int
    root_bits: int
    position_bits: int
    sections: Sections
    looked_up: Mapping[str, data.StructLayout] = field(default_factory=dict)

    @property
    def by_form(self) -> bool:
        """True if engines have constants for each form: with fixed tables."""
        return not self.looked_up

    def said_widths(self, verb: str) -> dict[str, int]:
        """Return the widths of the outputs of `Commands` for loaders or unloaders, keyed by name.

        Parameters
        ----------
        verb : {"load", "unload"}
            Prefix of the names.
        """
        bits = {"valid": int(self.commanded)} if verb == "load" else {}
        bits |= {"mode": self.form_bits, "root": self.root_bits}
        return {f"{verb}_{name}": self._runs(verb) * each for name, each in bits.items() if each}

    def end_widths(self, verb: str) -> dict[str, int]:
        """Return the widths of the inputs of loaders or unloaders for a run, keyed by name.

        With fixed tables these are the outputs of `Commands`; with loadable tables, the facts.

        Parameters
        ----------
        verb : {"load", "unload"}
            Prefix of the names.
        """
        if self.by_form:
            return self.said_widths(verb)
        valid = {"load_valid": 2} if verb == "load" else {}
        return valid | {f"{verb}_facts": self._runs(verb) * self.looked_up[verb].size}

    def _runs(self, verb: str) -> int:
        """Return the number of messages, or runs, for which each signal has a field."""
        return 2 if verb == "load" else self.sections.count
