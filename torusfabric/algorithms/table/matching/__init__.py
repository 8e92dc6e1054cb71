"""Collectives at their lower bound on any torus, by bipartite matching."""

from .plan import MATCHING

__all__ = ["MATCHING"]
