"""`RunFacts`: the widths of the inputs by which loaders and unloaders know the choices of a run.

The choices are form and root; a command asks for a run and makes these choices. The loader of a
node writes the message for run m into memories, its unloader sends the received words to the user,
both in *section* ``m mod S``, one of S equal parts of each memory. At most two messages are pending
at a loader, one with an even and one with an odd number. Each such input of a loader therefore has
two fields, selected by the lowest bit of the message number. Each such input of an unloader has one
field for each section.

With loadable tables a node has *facts* in place of form and root: values that it looks up in a
loaded table when a command arrives, such as the number of its packets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from amaranth.lib import data

from .sections import Sections

__all__ = ["RunFacts"]


@dataclass(frozen=True)
class RunFacts:
    """The widths of the signals by which loaders and unloaders know the form and root of a run.

    The loader of a node writes its message into memories, the unloader reads received words. With
    loadable tables, nodes look up other facts about a run instead of form and root.

    Parameters
    ----------
    commanded : bool
        True if the fabric has a command stream.
    form_bits, root_bits : int
        Bits of a form, and of a root; 0 if runs do not choose it.
    position_bits : int
        Bits of the position of a node in its group.
    sections : Sections
        Division of each memory into equal parts, which runs use in turn.
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
    def has_form_constants(self) -> bool:
        """True with fixed tables: loaders and unloaders then contain constants for each form."""
        return not self.looked_up

    def run_choice_widths(self, verb: str) -> dict[str, int]:
        """Return the widths of the outputs of `Commands` with form and root, keyed by name.

        They are for loaders (``load_mode``, ``load_root``) or for unloaders (``unload_mode``,
        ``unload_root``). Each has several fields, one for each message or run under way.

        Parameters
        ----------
        verb : {"load", "unload"}
            Prefix of the names.
        """
        bits = {"valid": int(self.commanded)} if verb == "load" else {}
        bits |= {"mode": self.form_bits, "root": self.root_bits}
        return {
            f"{verb}_{name}": self._fields_per_signal(verb) * each
            for name, each in bits.items()
            if each
        }

    def engine_input_widths(self, verb: str) -> dict[str, int]:
        """Return the widths of those inputs of a loader or unloader that describe runs, by name.

        With fixed tables these are form and root, outputs of `Commands`. With loadable tables, they
        are the facts that the node looks up, such as the number of its packets.

        Parameters
        ----------
        verb : {"load", "unload"}
            Prefix of the names.
        """
        if self.has_form_constants:
            return self.run_choice_widths(verb)
        valid = {"load_valid": 2} if verb == "load" else {}
        return valid | {f"{verb}_facts": self._fields_per_signal(verb) * self.looked_up[verb].size}

    def _fields_per_signal(self, verb: str) -> int:
        """Return the number of runs that a signal describes at a time, each in a field of its own.

        For loaders (`verb` "load") there are two, for messages with even and odd numbers. For
        unloaders ("unload") there is one for each section, the part of each memory for one run.
        """
        return 2 if verb == "load" else self.sections.n_sections
