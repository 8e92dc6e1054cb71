"""Mending of schedules in which messages meet: `spread` delays transfers until none do.

Two messages *meet* if they need one arc in the same round, or if a node would send or receive more
messages than its ports allow. A transfer comes *early* if its sender gets a block of it only later.
Both are faults that a delay mends. Users are `tf.spread`, `tf.find_collisions` and ``check
--spread``.
"""

from .collisions import Collision
from .mending import Spreading, explain_spread, find_collisions, spread

__all__ = ["Collision", "Spreading", "explain_spread", "find_collisions", "spread"]
