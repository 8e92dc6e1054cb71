"""All-gather along edge-disjoint Hamiltonian cycles."""

from .plan import HAMILTONIAN

__all__ = ["HAMILTONIAN"]
