"""Collectives at their lower bound on any torus, by bipartite matching."""
