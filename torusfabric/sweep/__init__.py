"""Sweeps over grids of fabrics, with a file of results, and comparisons of algorithms.

`grid` reads the description of a sweep, `work` computes one result, `cores` and `cluster`
distribute the work, and `results` stores it. `compare` and `fault_costs` serve the command
``compare``.
"""
