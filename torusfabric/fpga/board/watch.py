"""What the tools of a build are doing, told from the logs that they write meanwhile.

The platform's script runs all tools in one go and says nothing, and place and route of a large
fabric takes minutes. Its routers count what they still have to do: where that number does not sink
any more, the device is too crowded.
"""

import contextlib
import re
import threading

__all__ = ["stage", "watched"]

#: Seconds between two looks.
PERIOD = 1.0

STAGES = 4

#: A line of nextpnr's first router: connections made with and without removing others, the same
#: of the last thousand, and those to go.
_TO_GO = re.compile(r"^Info:\s+\d+ \|\s+\d+\s+\d+ \|\s+\d+\s+\d+ \|\s*(\d+)\|", re.MULTILINE)

#: A line of its second router: wires that are still used for more than one connection.
_OVERUSED = re.compile(r"^Info:\s+iter=\d+ wires=\d+ overused=(\d+) ", re.MULTILINE)


def stage(folder, name, product):
    """How far a build has got.

    Parameters
    ----------
    folder : Path
        Where the tools work.
    name : str
        Of their files.
    product : str
        The bitstream.

    Returns
    -------
    done : int
        Of `STAGES`.
    text : str
    """
    log = folder / f"{name}.tim"
    if not log.exists():
        return 0, "synthesis"
    said = log.read_text(encoding="utf-8", errors="replace")
    if (folder / product).exists() or "Program finished normally" in said:
        return 3, "packing the bitstream"
    if "Routing.." not in said and "Running router2" not in said:
        return 1, "placing"
    if left := _TO_GO.findall(said):
        return 2, f"routing, {left[-1]} connections to go"
    if shared := _OVERUSED.findall(said):
        return 2, f"routing, {shared[-1]} wires to be shared no more"
    return 2, "routing"


@contextlib.contextmanager
def watched(folder, name, product, progress):
    """Tell how far a build is, every second, as long as this lasts.

    Parameters
    ----------
    folder, name, product
        As of `stage`.
    progress : function of (int, int, str) or None
    """
    if progress is None:
        yield
        return
    over = threading.Event()

    def look():
        while True:
            done, text = stage(folder, name, product)
            progress(done, STAGES, text)
            if over.wait(PERIOD):
                return

    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()
