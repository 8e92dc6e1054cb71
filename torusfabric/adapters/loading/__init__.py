"""Loading: fabrics whose tables are RAMs, and the images that fill them.

Modules:

- `rewriting`: a program in the canonical form that every loaded fabric can carry out.
- `loadable`: such forms, by lengths and by roots.
- `room`: what may be loaded into a fabric.
- `places`: where modes lie in the tables.
- `contents`: the rows of the tables.
- `image`: images as words and as files.
- `loader`: the hardware that takes the words of an image.
- `hardware`: the tables, and what finds starts and words.
"""
