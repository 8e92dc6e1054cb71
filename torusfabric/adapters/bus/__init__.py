"""The host port behind a standard bus: registers, and windows onto the memories of the nodes.

============ ==================================================================================
options      the buses, and the option ``--bus``
ports        the ports of each
bridges      they make accesses of what a master asks on a bus
registers    they answer accesses, and drive and show the ports of a fabric
windows      bursts of AXI4 into and out of the memories of nodes
register_map which registers there are, at which addresses
hardware     all of them around a fabric
interface    what manifest, files, bench and proof are told
system_rdl   the register map for other tools
claims       proof: a bridge answers each request once
============ ==================================================================================
"""
