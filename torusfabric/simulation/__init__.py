"""Simulation of whole fabrics: runs, engines and waveforms."""
