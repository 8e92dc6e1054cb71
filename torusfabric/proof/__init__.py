"""Proofs of the emitted text."""

from .prove import prove
from .report import Counterexample, ModuleProof, Proof

__all__ = ["Counterexample", "ModuleProof", "Proof", "prove"]
