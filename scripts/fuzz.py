"""Give random bad input to every reader of input; each must accept it or refuse it in one line.

Inputs are schedule files, MSCCL XML, sweep files, command lines, bytes on the serial line (in both
directions), accesses to registers and packets of streams. `rtl_tests/support/fuzzing` makes them,
and decides whether an answer is wrong. The seed and the number of a case determine it, so that
`--case` makes it again.

Example::

    python scripts/fuzz.py --cases 10000 --seed 1
    python scripts/fuzz.py --case schedule:1:17
"""

import argparse
import os
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "rtl_tests" / "support")]

from fuzzing import FUZZERS, Fault, run_cases  # noqa: E402

from torusfabric.toolchain.progress import progress_bar  # noqa: E402


def parse_arguments() -> argparse.Namespace:
    """Return the arguments of the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--cases", type=int, default=10_000, help="how many (default 10000)")
    parser.add_argument("--seed", type=int, default=0, help="which ones (default 0)")
    parser.add_argument("--only", choices=tuple(FUZZERS), help="one sort of input")
    parser.add_argument("--case", metavar="WHAT:SEED:NUMBER", help="this one alone")
    return parser.parse_args()


def cases_by_sort(cases: int, only: str | None) -> dict[str, int]:
    """Return the number of cases of each sort of input."""
    chosen = {name: fuzzer for name, fuzzer in FUZZERS.items() if only in (None, name)}
    whole = sum(fuzzer.weight for fuzzer in chosen.values())
    return {name: -(-cases * fuzzer.weight // whole) for name, fuzzer in chosen.items()}


def run_sort(name: str, seed: int, numbers: range) -> Iterator[tuple[int, Fault | None]]:
    """Run the cases of one sort; yield the number of cases run, and a fault or None."""
    with tempfile.TemporaryDirectory(prefix="torusfabric-fuzz-") as folder:
        os.environ["TORUSFABRIC_CACHE"] = str(Path(folder, "cache"))
        work = Path(folder, "work")
        work.mkdir()
        fuzzer = FUZZERS[name](work)
        try:
            for fault in run_cases(fuzzer, seed, numbers):
                yield fuzzer.batch, fault
        finally:
            fuzzer.close()


def main() -> int:
    """Print all faults; return 2 if there are any."""
    arguments = parse_arguments()
    warnings.simplefilter("ignore")
    if arguments.case:
        name, seed, number = arguments.case.split(":")
        work = {name: range(int(number), int(number) + 1)}
    else:
        seed = arguments.seed
        counts = cases_by_sort(arguments.cases, arguments.only)
        work = {name: range(-(-n // FUZZERS[name].batch)) for name, n in counts.items()}
    wrong = done = 0
    whole = sum(len(numbers) * FUZZERS[name].batch for name, numbers in work.items())
    with progress_bar("cases") as progress:
        for name, numbers in work.items():
            for count, fault in run_sort(name, int(seed), numbers):
                done += count
                progress(done, whole)
                if fault:
                    wrong += 1
                    print(f"{fault.case}: {fault.input[:2000]}\n  {fault.reason}\n", flush=True)
    print(f"{done} cases, {wrong} of them wrong")
    return 2 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
