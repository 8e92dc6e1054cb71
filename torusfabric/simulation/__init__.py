"""Simulation of whole fabrics: runs, engines and waveforms.

In this package an *engine* is a simulator, and not a fabric with several modes.
"""
