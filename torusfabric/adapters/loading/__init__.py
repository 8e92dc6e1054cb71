"""Loading: *loaded* fabrics, whose tables are RAMs, and the images that fill these tables.

A run goes through the tables in this order::

    start (mode, length, root)
      -> starts             all rows are compared; the matching one is the entry
      -> modes[entry]       first row of the form, number of chunks, ..
      -> rows[row]          cycles of the row, and a number for each setting table
      -> setting tables     of each node: [number] selects, reads and stores in this row

The terms of this package:

- *Loading* an image means writing its words into the tables.
- A *room* is the capacity of a loaded fabric: the limits of all programs that can be loaded.
- A *canonical form* is a form that has been rewritten so that any large enough room can execute it.
- An *entry* is one form of a mode, for one root if runs choose the root. A mode has an entry for
  each of its forms and roots. One of them is its *default* entry, the others are *further* entries.
- A *control point* is a selector, an address or an enable of a node, with one value for each row.
- A *setting* is a row of a setting table of a node: the values of some control points. The rows of
  a program refer to settings by number.
- An *owner* is a node, or one of the tables that exist once in a fabric. The loader addresses the
  tables by owner number.
- A *slot* is a cycle in which the sequencer presents a row and a flit. A word is read, or stored,
  some cycles after its slot.

Modules, in reading order:

- `rewriting`: rewrites a program into canonical form.
- `loadable`: canonical forms, and modes of several forms for message lengths and roots.
- `room`: the capacity of a loaded fabric, and the check that a form fits.
- `places`: allocation of table rows to entries.
- `fitting`, `choose`: the schedules of a mode that can be loaded, and the fastest of them.
- `layout`: the bit fields and sizes of the tables.
- `contents`: the rows of the tables for given entries.
- `image`: images as words and as files.
- `loader`: the hardware that checks the words of an image and writes them into tables.
- `table`: the hardware of the tables.
- `requests`, `finder`: the selection of the entry, and the locations of received blocks.
- `streams`: loaders and unloaders that read tables.
- `hardware`, `front`: add the tables, the loader and the ports to a core.
- `interface`: declarations for manifest, test bench and proof.
- `claims`: the proof.
"""
