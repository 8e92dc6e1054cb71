"""Loading: fabrics whose tables are RAMs, and the images that fill them.

Modules:

- `rewriting`: rewrites a program into the canonical form that every loaded fabric can execute.
- `loadable`: canonical forms, and modes of several forms for message lengths and roots.
- `room`: the capacity of a loaded fabric, and the check that a form fits.
- `places`: allocation of table rows to the forms of modes.
- `contents`: the rows of the tables for given forms.
- `image`: images as words and as files.
- `loader`: the hardware that checks the words of an image and writes them into tables.
- `hardware`: adds the tables, the loader and the host port to a core.
"""
