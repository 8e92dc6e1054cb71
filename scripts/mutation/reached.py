"""Tests that reach a mutant, by the measurements of `reach`, and their order."""

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from .mutants import Mutant

__all__ = ["Reached"]


class Reached:
    """Tests that reach each line.

    Parameters
    ----------
    files : iterable of Path
        Files that `reach` has written.
    """

    def __init__(self, files: Iterable[Path]) -> None:
        self.seconds: dict[str, float] = {}
        self.lines: dict[str, dict[int, set[str]]] = {}
        self.imported: set[tuple[str, int]] = set()
        for file in files:
            found = json.loads(file.read_text(encoding="utf-8"))
            names = list(found["tests"])
            self.seconds |= found["tests"]
            for path, lines in found["reached"].items():
                for line, numbers in lines.items():
                    tests = self.lines.setdefault(path, {}).setdefault(int(line), set())
                    tests.update(names[n] for n in numbers if n >= 0)
                    if numbers[-1:] == [-1]:
                        self.imported.add((path, int(line)))

    def forget(self, tests: Iterable[str]) -> None:
        """Never choose these tests again."""
        for test in tests:
            self.seconds.pop(test, None)

    def is_imported(self, mutant: Mutant) -> bool:
        """Return True if the collection of tests also reaches a mutant."""
        return any((mutant.path, line) in self.imported for line in mutant.lines)

    def tests(self, mutant: Mutant) -> set[str]:
        """Return the tests that reach a mutant.

        A line that runs when a module is imported counts as reached by all tests that reach the
        module.
        """
        lines = self.lines.get(mutant.path, {})
        tests = set().union(*(lines.get(line, ()) for line in mutant.lines))
        if mutant.function is None or (not tests and any(line in lines for line in mutant.lines)):
            tests = set().union(*lines.values())
        return tests & self.seconds.keys()

    def chosen(self, mutant: Mutant, limit: float) -> list[str]:
        """Return the tests that may kill a mutant, in order, of at most `limit` seconds in all.

        The tests that reach the mutant come first, likely and fast ones before others. Two sorts
        follow: tests that only reach the module, because a value that is computed once is counted
        for the first test that asks for it; and tests that are named after the module, which may
        run it in a process of their own.
        """
        reaching = self.tests(mutant)
        beside = set().union(*self.lines.get(mutant.path, {}).values()) & self.seconds.keys()
        file = f"/test_{Path(mutant.path).stem}.py::"
        beside |= {test for test in self.seconds if file in test}
        order = [*self._in_turn(reaching, mutant), *self._in_turn(beside - reaching, mutant)]
        return self.at_most(limit, order) or order[:1]

    def _in_turn(self, tests: set[str], mutant: Mutant) -> list[str]:
        """Return tests in turns: one case of each function, then a second case of each.

        Examples of the module itself come before all. Within a turn, tests near the module come
        first, then fast ones.
        """
        cases: Counter[str] = Counter()
        keys = []
        for test in sorted(tests, key=lambda test: (self.seconds[test], test)):
            function = test.partition("[")[0]
            case = -1 if self._is_example(test, mutant) else cases[function]
            keys.append((case, not self.is_near(test, mutant), self.seconds[test], test))
            cases[function] += 1
        return [test for *_, test in sorted(keys)]

    def is_near(self, test: str, mutant: Mutant) -> bool:
        """Return True if a test belongs to a mutant's package, or is an example of its module."""
        room = mutant.path.split("/")[1]
        return test.startswith(f"rtl_tests/{room}/") or self._is_example(test, mutant)

    def _is_example(self, test: str, mutant: Mutant) -> bool:
        name = mutant.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        return test.endswith(f"[{name}]")

    def at_most(self, limit: float, tests: Iterable[str]) -> list[str]:
        """Return the tests that fit into a limit of seconds together, in their order."""
        kept = []
        for test in tests:
            if self.seconds[test] <= limit:
                limit -= self.seconds[test]
                kept.append(test)
        return kept
