"""Proof that a fabric on several boards delivers the results of its collectives.

======= ==========================================================================================
control boards start together, with equal choices, and agree on the result of a run
buffers each word of a run is taken in its cycle, for all clocks within the limits
crcs    the CRC-32 behind each packet is sent and checked as defined
cables  the wires of a board are right; joined by cables, the boards are the whole fabric
prove   all of the above together, and whole runs on all boards
======= ==========================================================================================
"""

from .prove import prove_boards
from .prove import prove_boards as prove

__all__ = ["prove", "prove_boards"]
