"""Synthesis: what a fabric costs on an FPGA and how fast it runs."""
