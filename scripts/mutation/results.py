"""Outcomes of mutants, kept in a file."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .mutants import Mutant
from .trial import Verdict

__all__ = ["Results"]


class Results:
    """Outcomes of mutants; the last entry of a mutant counts.

    Parameters
    ----------
    path : Path
        File with one line of JSON for each trial.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        lines = path.read_text("utf-8").splitlines() if path.exists() else []
        self._known: dict[str, dict[str, Any]] = {
            entry["digest"]: entry for entry in map(json.loads, lines)
        }

    def add(self, mutant: Mutant, verdict: Verdict) -> None:
        """Keep the verdict on a mutant."""
        before, after = mutant.change
        self._keep({
            "digest": mutant.digest, "path": mutant.path, "line": mutant.line,
            "operator": mutant.operator, "before": before, "after": after, **verdict._asdict(),
        })  # fmt: skip

    def outcome(self, mutant: Mutant) -> str:
        """Return the outcome of a mutant; empty if the mutant is still to be tried."""
        return self._known.get(mutant.digest, {}).get("outcome", "")

    def doubtful(self, mutants: Iterable[Mutant]) -> set[str]:
        """Return tests that killed these mutants and have not yet passed on unchanged code."""
        entries = (self._known.get(mutant.digest, {}) for mutant in mutants)
        return {entry["by"] for entry in entries if entry.get("by") and "sound" not in entry}

    def confirm(self, tests: set[str], *, useless: set[str]) -> None:
        """Record tests that pass without a change, and `useless` tests that fail without one.

        The kills of a useless test are withdrawn, so that these mutants are tried again.
        """
        for entry in [*self._known.values()]:
            if entry["by"] in useless:
                self._keep(entry | {"outcome": "", "by": ""})
            elif entry["by"] in tests and "sound" not in entry:
                self._keep(entry | {"sound": True})

    def _keep(self, entry: dict[str, Any]) -> None:
        self._known[entry["digest"]] = entry
        with self.path.open("a", encoding="utf-8") as file:
            print(json.dumps(entry), file=file, flush=True)
