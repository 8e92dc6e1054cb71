"""Mutation tests: change one place of the source at a time, and see whether a test fails.

Mutants are random, chosen by seed from some packages, the same number of each operator (compare,
arithmetic, constant, boolean, statement, arguments). The tests that reach the changed line run in a
copy of the tree; the first failure kills the mutant. The tests that reach each line are measured
once, and the measurement is kept. `rtl_tests/equivalent_mutants.toml` lists, with reasons, mutants
without an effect that can be observed.

Example::

    bash scripts/mutate --count 60 --seed 1 --work build/mutate
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from queue import SimpleQueue

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from .mutants import Mutant, mutants_of, sample
from .reached import Reached
from .results import Results
from .trial import Copy

ROOT = Path(__file__).parents[2]
ROOMS = "program,rtl,analysis,schedule,verilog"

#: Folders of tests that run, and the test module that runs the examples of docstrings.
TESTED = (
    "schedule", "analysis", "program", "collective", "topology", "planning", "rtl", "verilog",
    "algorithms", "conformance", "simulation", "draw", "cli", "documents/test_docstrings.py",
)  # fmt: skip

#: Outcomes of a mutant that call for another test.
OPEN = ("survived", "unreached")

#: Part of the paths of modules that simulators run, and tests do not.
ELSEWHERE = "/bench/files/"


def parse_arguments() -> argparse.Namespace:
    """Return the arguments of the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=60, help="how many mutants")
    parser.add_argument("--seed", type=int, default=0, help="which ones")
    parser.add_argument("--rooms", default=ROOMS, help=f"what is changed; default {ROOMS}")
    parser.add_argument("--only", default="", help="only modules whose path contains this")
    parser.add_argument("--limit", type=float, default=60, help="seconds of tests for a mutant")
    parser.add_argument("--jobs", type=int, default=2, help="how many mutants at once")
    parser.add_argument("--work", type=Path, default=ROOT / "build/mutate",
                        help="where measurements and results are kept")  # fmt: skip
    return parser.parse_args()


def measure_reach(work: Path) -> Reached:
    """Return the tests that reach each line, measured now unless a measurement is kept."""
    folder = work / "reach"
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / f"{Path(room).stem}.json" for room in TESTED]
    places = (ROOT, ROOT / "rtl_tests/support", ROOT / "scripts")
    for room, file in zip(TESTED, files, strict=True):
        if not file.exists():
            print(f"measuring rtl_tests/{room}", file=sys.stderr)
            environment = {
                "PYTHONPATH": os.pathsep.join(map(str, places)), "MUTATION_REACH": str(file),
            }  # fmt: skip
            words = [sys.executable, "-m", "pytest", "-q", "-p", "mutation.reach"]
            subprocess.run([*words, f"rtl_tests/{room}"], cwd=ROOT, env=os.environ | environment)
    return Reached(file for file in files if file.exists())


def known_equivalents() -> set[tuple[str, tuple[str, str]]]:
    """Return the known equivalent mutants: the path of each, and its lines before and after."""
    listed = tomllib.loads((ROOT / "rtl_tests/equivalent_mutants.toml").read_text("utf-8"))
    return {(item["path"], (item["before"], item["after"])) for item in listed["mutant"]}


def choose_mutants(arguments: argparse.Namespace) -> list[Mutant]:
    """Return the random sample of mutants."""
    found = [
        mutant
        for room in arguments.rooms.split(",")
        for path in sorted((ROOT / "torusfabric" / room).rglob("*.py"))
        if arguments.only in path.as_posix() and ELSEWHERE not in path.as_posix()
        for mutant in mutants_of(path.relative_to(ROOT).as_posix(), ROOT)
    ]
    return sample(found, arguments.count, arguments.seed)


def try_mutants(
    arguments: argparse.Namespace, mutants: list[Mutant]
) -> Iterator[tuple[Mutant, str]]:
    """Yield each mutant with its outcome; a mutant that is known to be killed does not run again.

    A test that fails without any change kills nothing. The mutants that it seemed to kill are tried
    a second time, without it.
    """
    reached, results = measure_reach(arguments.work), Results(arguments.work / "results.jsonl")
    without_effect = known_equivalents()
    with (
        tempfile.TemporaryDirectory() as folder,
        ExitStack() as stack,
        ThreadPoolExecutor(arguments.jobs) as pool,
    ):
        copies: SimpleQueue[Copy] = SimpleQueue()
        for job in range(arguments.jobs):
            copies.put(stack.enter_context(Copy(ROOT, Path(folder, str(job)), TESTED)))

        def known(mutant: Mutant) -> str:
            equivalent = (mutant.path, mutant.change) in without_effect
            return "equivalent" if equivalent else results.outcome(mutant)

        def outcome(mutant: Mutant) -> str:
            if known(mutant) in ("", *OPEN):
                copy = copies.get()
                results.add(mutant, copy.try_out(mutant, reached, arguments.limit))
                copies.put(copy)
            return known(mutant)

        while mutants:
            yield from zip(mutants, pool.map(outcome, mutants), strict=True)
            copy, tests = copies.get(), results.doubtful(mutants)
            results.confirm(tests, useless=(useless := copy.failing(tests)))
            copies.put(copy)
            reached.forget(useless)
            mutants = [mutant for mutant in mutants if not known(mutant)]


def main() -> int:
    """Print every survivor, and the score; return 2 if a mutant is not killed."""
    arguments = parse_arguments()
    arguments.work = arguments.work.resolve()
    outcomes: dict[Mutant, str] = {}
    mutants = choose_mutants(arguments)
    for mutant, outcome in try_mutants(arguments, mutants):
        outcomes[mutant] = outcome
        counts = Counter(outcomes.values())
        if outcome in OPEN:
            before, after = mutant.change
            print(f"{mutant.path}:{mutant.line}: {outcome} ({mutant.operator})")
            print(f"  - {before}\n  + {after}", flush=True)
        print(f"{counts.total()}/{len(mutants)} {dict(counts)}", file=sys.stderr)
    killed, tested = counts["killed"] + counts["timeout"], len(mutants) - counts["equivalent"]
    print(f"{killed} of {tested} killed, {counts['equivalent']} equivalent: "
          f"{killed / max(tested, 1):.1%}")  # fmt: skip
    return 0 if killed == tested else 2


if __name__ == "__main__":
    sys.exit(main())
