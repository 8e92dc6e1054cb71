"""Bad input, made at random, and what every answer to it must be.

A case is one input. It must be taken, or refused in one line by an error of ours; it must not take
long, nor leave a file behind. Each module makes input of another sort; `FUZZERS` lists all.
"""

from .boards import BoardFuzzer, BridgeFuzzer
from .buses import BusFuzzer
from .calls import CallFuzzer
from .lines import LineFuzzer
from .msccl import MscclFuzzer
from .oracle import Fault, Fuzzer, run_cases
from .packets import PacketFuzzer
from .schedules import ScheduleFuzzer
from .sweeps import SweepFuzzer

__all__ = ["FUZZERS", "Fault", "Fuzzer", "run_cases"]

#: What is made, by name.
FUZZERS: dict[str, type[Fuzzer]] = {
    fuzzer.name: fuzzer
    for fuzzer in (
        ScheduleFuzzer, MscclFuzzer, SweepFuzzer, LineFuzzer, BoardFuzzer, BridgeFuzzer, BusFuzzer,
        PacketFuzzer, CallFuzzer,
    )
}  # fmt: skip
