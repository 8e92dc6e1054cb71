"""Fabrics with their adapters, made from the choices of a user.

`spec` holds the choices, `options` declares them, `choose` plans a schedule for each mode, `make`
builds the hardware, which is a `fabric.Fabric`, and `images` fills loaded tables.
"""
