"""What commands are for: the help of the command line lists them by purpose."""

import argparse
from collections.abc import Iterable, Iterator, Mapping

__all__ = ["PURPOSES", "Help", "by_purpose"]

#: Commands by purpose, in the order in which a newcomer meets them.
PURPOSES: Mapping[str, tuple[str, ...]] = {
    "plan and look": ("algorithms", "plan", "check", "compare", "draw", "animate"),
    "hardware": ("verilog", "simulate", "synth", "prove"),
    "boards": ("boards", "build", "flash", "monitor", "run"),
    "other systems": ("import", "export"),
    "many fabrics": ("sweep",),
    "this installation": ("doctor", "cache", "completion"),
}


def by_purpose(names: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
    """The commands of each purpose, of those that there are; what has none comes last.

    Examples
    --------
    >>> dict(by_purpose(["synth", "plan", "verilog"]))
    {'plan and look': ['plan'], 'hardware': ['verilog', 'synth']}
    """
    left = list(names)
    for purpose, commands in PURPOSES.items():
        if found := [name for name in commands if name in left]:
            yield purpose, found
        left = [name for name in left if name not in found]
    if left:
        yield "others", left


class Help(argparse.RawDescriptionHelpFormatter):
    """Help in which commands stand below what they are for."""

    def _format_action(self, action: argparse.Action) -> str:
        """The lines of an argument: those of the commands by purpose."""
        if action.nargs != argparse.PARSER:
            return super()._format_action(action)
        entries = {entry.dest: entry for entry in self._iter_indented_subactions(action)}
        parts = []
        for purpose, names in by_purpose(entries):
            lines = [super(Help, self)._format_action(entries[name]) for name in names]
            parts.append(f"{purpose}:\n" + "".join(lines))
        return "\n" + "\n".join(parts)
