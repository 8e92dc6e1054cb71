"""Broadcasts in the arrowhead torus (Deserable 1996)."""
