"""The choices of commands for runs, as nodes are given them.

Loaders are given those of two messages, of an even and of an odd number: no more of them wait.
Unloaders are given those of a run in each section of the memories.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from amaranth.lib import data

from .sections import Sections

__all__ = ["RunFacts"]


@dataclass(frozen=True)
class RunFacts:
    """What commands say of a run, and what nodes look up of it.

    Parameters
    ----------
    commanded : bool
        Whether there are commands at all.
    form_bits, root_bits : int
        Bits of a form, and of a root; 0 where there is no choice.
    position_bits : int
        Bits of the position of a node in its group.
    sections : Sections
        Of memories.
    looked_up : dict of str to data.StructLayout
        Where nodes look up what there is to know of a run, rather than have constants of each form:
        the facts for what they ``load``, and for what they ``unload``.
    """

    commanded: bool
    form_bits: int
    root_bits: int
    position_bits: int
    sections: Sections
    looked_up: Mapping[str, data.StructLayout] = field(default_factory=dict)

    @property
    def by_form(self) -> bool:
        """Whether nodes have constants of each form."""
        return not self.looked_up

    def said_widths(self, verb: str) -> dict[str, int]:
        """Names and widths of what commands say of messages to ``load``, or runs to ``unload``."""
        bits = {"valid": int(self.commanded)} if verb == "load" else {}
        bits |= {"mode": self.form_bits, "root": self.root_bits}
        return {f"{verb}_{name}": self._runs(verb) * each for name, each in bits.items() if each}

    def end_widths(self, verb: str) -> dict[str, int]:
        """The same of what loaders, or unloaders, are given of them."""
        if self.by_form:
            return self.said_widths(verb)
        valid = {"load_valid": 2} if verb == "load" else {}
        return valid | {f"{verb}_facts": self._runs(verb) * self.looked_up[verb].size}

    def _runs(self, verb: str) -> int:
        """Of how many messages, or runs, anything is said."""
        return 2 if verb == "load" else self.sections.count
