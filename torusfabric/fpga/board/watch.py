"""What the tools of a build are doing, read from the logs that they write meanwhile.

The platform's script runs all tools in one go and prints nothing, and place and route of a large
fabric takes minutes. Its routers count what they still have to do: where that number does not sink
any more, the device is too crowded.
"""

import re
from collections.abc import Callable
from pathlib import Path

__all__ = ["STAGES", "Progress", "stage"]

#: Called with the number of stages done, of all stages, and what is being done.
Progress = Callable[[int, int, str], object]

#: Stages of a build: synthesis, placing, routing and packing.
STAGES = 4

#: A line of nextpnr's first router: connections made with and without removing others, the same
#: of the last thousand, and those to go.
_TO_GO = re.compile(r"^Info:\s+\d+ \|\s+\d+\s+\d+ \|\s+\d+\s+\d+ \|\s*(\d+)\|", re.MULTILINE)

#: A line of its second router: wires that are still used for more than one connection.
_OVERUSED = re.compile(r"^Info:\s+iter=\d+ wires=\d+ overused=(\d+) ", re.MULTILINE)


def stage(folder: Path, name: str, product: str) -> tuple[int, str]:
    """How far a build has got.

    Parameters
    ----------
    name : str
        Of their files.
    product : str
        The bitstream.

    Returns
    -------
    done : int
        Of `STAGES`.
    text : str
        What is being done.
    """
    log = folder / f"{name}.tim"
    if not log.exists():
        return 0, "synthesis"
    text = log.read_text(encoding="utf-8", errors="replace")
    if (folder / product).exists() or "Program finished normally" in text:
        return 3, "packing the bitstream"
    if "Routing.." not in text and "Running router2" not in text:
        return 1, "placing"
    if left := _TO_GO.findall(text):
        return 2, f"routing, {left[-1]} connections to go"
    if shared := _OVERUSED.findall(text):
        return 2, f"routing, {shared[-1]} wires to be shared no more"
    return 2, "routing"
