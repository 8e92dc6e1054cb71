"""Fabrics whose tables are loaded: all that a program says lies in memories that are written.

A guest: `torusfabric.program.frame` says what there is room for. Routers, operators, endpoints, and
loaders, unloaders and commands of streams, are those of all fabrics, of one shape each: a table is
one more place of what they are given. `layout` says which bits of a row are what, and `image` makes
the words of a program, which `image_loader` takes.
"""
