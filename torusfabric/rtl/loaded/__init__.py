"""Fabrics whose tables are loaded: all that a program says lies in memories that are written.

A guest: `torusfabric.program.frame` says what there is room for; routers, operators and endpoints
are those of all fabrics, of one shape; `layout` says which bits of a row are what, and makes an
image of a program, whose words the loader takes.
"""
