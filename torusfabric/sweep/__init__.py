"""Grids of work: sweeps, comparisons, results files."""
