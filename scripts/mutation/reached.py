"""Which tests reach a mutant, as `reach` measured it, and which of them are run first."""

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from .mutants import Mutant

__all__ = ["Reached"]


class Reached:
    """Which tests reach which line.

    Parameters
    ----------
    files : iterable of Path
        What `reach` wrote.
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
        """Never choose these."""
        for test in tests:
            self.seconds.pop(test, None)

    def is_imported(self, mutant: Mutant) -> bool:
        """Whether a mutant is also reached when tests are collected."""
        return any((mutant.path, line) in self.imported for line in mutant.lines)

    def tests(self, mutant: Mutant) -> set[str]:
        """Tests that reach a mutant.

        What runs when a module is imported is reached by all tests that reach the module.
        """
        lines = self.lines.get(mutant.path, {})
        tests = set().union(*(lines.get(line, ()) for line in mutant.lines))
        if mutant.function is None or (not tests and any(line in lines for line in mutant.lines)):
            tests = set().union(*lines.values())
        return tests & self.seconds.keys()

    def chosen(self, mutant: Mutant, limit: float) -> list[str]:
        """Tests that may kill a mutant, the likely and fast ones first, in at most so many seconds.

        Those that reach it come before those that only reach its module, since what is computed
        once is reached by the first test that asks for it, and before those that are named after
        the module, which may run it in a process of its own.
        """
        reaching = self.tests(mutant)
        beside = set().union(*self.lines.get(mutant.path, {}).values()) & self.seconds.keys()
        file = f"/test_{Path(mutant.path).stem}.py::"
        beside |= {test for test in self.seconds if file in test}
        order = [*self._in_turn(reaching, mutant), *self._in_turn(beside - reaching, mutant)]
        return self.at_most(limit, order) or order[:1]

    def _in_turn(self, tests: set[str], mutant: Mutant) -> list[str]:
        """Tests in order: one case of each function, then the second ones; near ones before others.

        The examples of the module itself come before all.
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
        """Whether a test belongs to the room of a mutant, or is an example of its module."""
        room = mutant.path.split("/")[1]
        return test.startswith(f"rtl_tests/{room}/") or self._is_example(test, mutant)

    def _is_example(self, test: str, mutant: Mutant) -> bool:
        name = mutant.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        return test.endswith(f"[{name}]")

    def at_most(self, limit: float, tests: Iterable[str]) -> list[str]:
        """As many tests as can be run in some time, in their order."""
        kept = []
        for test in tests:
            if self.seconds[test] <= limit:
                limit -= self.seconds[test]
                kept.append(test)
        return kept
