"""Broadcasts in the arrowhead torus."""
