"""Random bad input, and the checks of each answer.

A case is one input. It must be accepted, or refused in one line by an error of torusfabric. It must
end in time and leave no file behind. Each module makes one sort of input; `FUZZERS` lists all.
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

#: Fuzzers by the name of their sort of input.
FUZZERS: dict[str, type[Fuzzer]] = {
    fuzzer.name: fuzzer
    for fuzzer in (
        ScheduleFuzzer, MscclFuzzer, SweepFuzzer, LineFuzzer, BoardFuzzer, BridgeFuzzer, BusFuzzer,
        PacketFuzzer, CallFuzzer,
    )
}  # fmt: skip
