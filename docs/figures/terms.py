"""Pictures of terms: torus, message, program and fabric, and the chain from plan to bitstream."""

from diagram_shapes import (
    AMBER,
    BLUE,
    GREEN,
    GRID,
    INK,
    LINK,
    PALE,
    PLAIN,
    arrow,
    box,
    label,
    rectangle,
)

from torusfabric.draw.svg import Svg

__all__ = ["adapters", "chain", "message", "program_rows", "torus"]


def torus() -> str:
    """Return a picture of a torus 3x4 with its links, and two neighbours enlarged."""
    svg = Svg()
    xs, ys, size = (84, 168, 252, 336), (84, 164, 244), 40
    for row, y in enumerate(ys):
        for column, x in enumerate(xs):
            right, below = 4 * row + (column + 1) % 4, 4 * ((row + 1) % 3) + column
            svg.add_lines([[(x + size, y + 20), (x + 84, y + 20)]], stroke=LINK, stroke_width=2)
            svg.add_lines([[(x + 20, y + size), (x + 20, y + 80)]], stroke=LINK, stroke_width=2)
            if column == 3:
                svg.add_lines([[(48, y + 20), (84, y + 20)]], stroke=LINK, stroke_width=2)
                label(svg, 424, y + 24, f"{right}", 11)
                label(svg, 36, y + 24, f"{4 * row + 3}", 11, text_anchor="middle")
            if row == 2:
                svg.add_lines([[(x + 20, 52), (x + 20, 84)]], stroke=LINK, stroke_width=2)
                label(svg, x + 20, 338, f"{below}", 11, text_anchor="middle")
                label(svg, x + 20, 46, f"{8 + column}", 11, text_anchor="middle")
    for row, y in enumerate(ys):
        for column, x in enumerate(xs):
            number = 4 * row + column
            fill = AMBER if number in (5, 6) else BLUE
            box(svg, (x, y, size, size), f"{number}", fill=fill)
    arrow(svg, (84, 22), (170, 22))
    label(svg, 178, 26, "axis 1: a row of 4 nodes")
    arrow(svg, (14, 92), (14, 170))
    label(svg, 4, 80, "axis 0: 3 rows", 11)
    label(svg, 24, 362, "wrap-around: the link that leaves the picture ends at the numbered node")
    _draw_neighbours(svg)
    return svg.render(884, 378, "A torus 3x4: nodes, ports, links, arcs and wrap-around")


def _draw_neighbours(svg: Svg) -> None:
    """Draw nodes 5 and 6 enlarged, with their ports and the arcs of the link between them."""
    label(svg, 480, 46, "nodes 5 and 6, enlarged", 12, fill=INK, font_weight="bold")
    box(svg, (480, 84, 110, 200), "node 5", fill=AMBER)
    box(svg, (750, 84, 110, 200), "node 6", fill=AMBER)
    for x in (580, 740):
        rectangle(svg, (x, 146, 20, 76), PLAIN, rx=3, stroke=LINK, stroke_width=1.6)
    label(svg, 596, 138, "port +1 of node 5", fill=INK)
    label(svg, 744, 240, "port -1 of node 6", fill=INK, text_anchor="end")
    arrow(svg, (600, 166), (740, 166))
    arrow(svg, (740, 202), (600, 202))
    label(svg, 670, 158, "arc 5:+1", fill=INK, text_anchor="middle")
    label(svg, 670, 218, "arc 6:-1", fill=INK, text_anchor="middle")
    svg.add_lines([[(606, 262), (606, 268), (734, 268), (734, 262)]], stroke=PALE, stroke_width=1.2)
    label(svg, 670, 284, "one link: two arcs", text_anchor="middle")
    arrow(svg, (535, 84), (535, 62))
    label(svg, 543, 68, "port -0")
    arrow(svg, (535, 284), (535, 312))
    label(svg, 543, 308, "port +0, to node 9")


def message() -> str:
    """Return a picture of a message, its chunks, a block and its flits as nested bars."""
    svg = Svg()
    left, cell, gap = 130, 78, 4
    bars = (
        ("message", 30, 1, PLAIN, lambda k: "the message of node 5: L = 8 flits"),
        ("chunks", 82, 2, BLUE, lambda k: f"chunk {k} of M = 2"),
        ("blocks", 134, 2, GREEN, lambda k: f"block [5, {k}]: origin 5, chunk {k}"),
        ("flits", 186, 8, AMBER, lambda k: f"flit {k}"),
    )
    for name, y, parts, fill, text in bars:
        label(svg, 24, y + 23, name, 13, fill=INK, font_weight="bold")
        width = 8 * cell / parts
        for k in range(parts):
            x = left + k * width
            rectangle(svg, (x, y, width - gap, 36), fill, rx=5)
            middle = x + (width - gap) / 2
            label(svg, middle, y + 23, text(k), fill=INK, text_anchor="middle")
    svg.add_lines(
        [[(left, 230), (left, 236), (left + cell - gap, 236), (left + cell - gap, 230)]],
        stroke=PALE,
        stroke_width=1.2,
    )
    label(svg, left, 254, "one flit: W bits (--width), one cycle on a link")
    label(svg, left + 4 * cell, 254, "a block crosses a link in 4 cycles, flit after flit")
    return svg.render(780, 272, "A message is cut into chunks; a block is sent flit by flit")


#: Columns of the picture of the rows of a program: left edge, width and title.
COLUMNS = (
    (24, 90, "row"),
    (114, 130, "mode"),
    (244, 196, "form"),
    (440, 130, "step"),
    (570, 266, "settings of all nodes"),
)

#: Forms of the program in this picture: colour, mode, form, and the rows with their steps. The mode
#: is empty if it is that of the form above.
FORMS = (
    (BLUE, "0: all-gather", "0: bufferless", (("0", "1"), ("..", ".."), ("3", "4"))),
    (GREEN, "", "1: matching", (("4", "1"), ("..", ".."), ("18", "15"))),
    (AMBER, "1: all-to-all", "0: matching", (("19", "1"), ("..", ".."), ("26", "8"))),
)


def program_rows() -> str:
    """Return a picture of the rows of a program with two modes, one of which has two forms."""
    svg = Svg()
    for x, width, title in COLUMNS:
        rectangle(svg, (x, 24, width, 30), "#eceff1")
        label(svg, x + 10, 44, title, 12.5, fill=INK, font_weight="bold")
    y = 54
    for fill, mode, form, rows in FORMS:
        for number, (row, step) in enumerate(rows):
            names = ("", "") if number else (mode, form)
            _draw_row(svg, y, fill, (row, *names, step, ""))
            y += 26
    label(
        svg,
        24,
        y + 22,
        "A run executes the rows of one form. Its mode and length, given with "
        "start, choose the form.",
    )
    return svg.render(860, y + 38, "A program: rows, grouped by mode and form")


def _draw_row(svg: Svg, y: int, fill: str, texts: tuple[str, ...]) -> None:
    """Draw a row of a program at height y: a text for each column, and three settings."""
    for (x, width, _), text in zip(COLUMNS, texts, strict=True):
        rectangle(svg, (x, y, width, 26), fill, stroke=GRID, stroke_width=0.8)
        label(svg, x + 10, y + 18, text, fill=INK)
    if texts[0] == "..":
        return
    for k, setting in enumerate(("selects", "reads", "writes")):
        x = 580 + 84 * k
        rectangle(svg, (x, y + 4, 78, 18), PLAIN, rx=3, stroke=GRID, stroke_width=0.8)
        label(svg, x + 39, y + 17, setting, 10.5, text_anchor="middle")


def adapters() -> str:
    """Return a picture of the core of a fabric and the adapters around it."""
    svg = Svg()
    rectangle(svg, (270, 104, 320, 170), BLUE, rx=8, stroke_width=1.6)
    label(svg, 430, 128, "core", 15, fill=INK, font_weight="bold", text_anchor="middle")
    box(svg, (290, 142, 130, 50), "sequencer", "rows of the program", fill=AMBER)
    box(svg, (440, 142, 130, 50), "routers", "crossbars")
    box(svg, (290, 206, 130, 50), "endpoints", "memories, addresses")
    box(svg, (440, 206, 130, 50), "links", "a flit a cycle")
    box(svg, (24, 120, 150, 56), "bus", "AXI4, AXI4-Lite, Wishbone", fill=GREEN)
    box(svg, (24, 206, 150, 56), "host port", "all memories, one master", fill=GREEN)
    arrow(svg, (99, 176), (99, 206))
    arrow(svg, (174, 228), (270, 228))
    arrow(svg, (270, 240), (174, 240))
    box(svg, (340, 24, 180, 50), "loaded tables", "--tables ram: RAM for rows", fill=GREEN)
    arrow(svg, (430, 74), (430, 104))
    label(svg, 532, 53, "filled by an image")
    box(svg, (686, 120, 150, 56), "streams", "AXI4-Stream, each node", fill=GREEN)
    box(svg, (686, 206, 150, 56), "several boards", "link ports, common start", fill=GREEN)
    arrow(svg, (686, 142), (590, 142))
    arrow(svg, (590, 154), (686, 154))
    arrow(svg, (590, 234), (686, 234))
    arrow(svg, (686, 246), (590, 246))
    label(
        svg,
        24,
        312,
        "green: adapters. A fabric is the core and the adapters that you choose "
        "(--bus, --top, --tables, --boards); host port by default.",
    )
    return svg.render(860, 328, "A fabric: the core, and the adapters around it")


def chain() -> str:
    """Return a picture of the chain from topology and collective to hardware; beneath, a node."""
    svg = Svg()
    svg.add_lines(
        [[(566, 128), (396, 196)], [(686, 128), (840, 196)]],
        stroke=GRID,
        stroke_width=1,
        stroke_dasharray="4 3",
    )
    box(svg, (20, 30, 116, 50), "topology", "4x4", fill=AMBER)
    box(svg, (20, 106, 116, 50), "collective", "allgather", fill=AMBER)
    box(svg, (186, 58, 140, 70), "schedule", "which block, which link,", fill=BLUE)
    label(svg, 256, 120, "in which step", 10.5, text_anchor="middle")
    box(svg, (376, 58, 140, 70), "program", "settings of each router", fill=BLUE)
    label(svg, 446, 120, "and memory, row by row", 10.5, text_anchor="middle")
    box(svg, (566, 58, 120, 70), "fabric", "core and adapters", fill=BLUE)
    svg.add_lines(
        [[(136, 55), (160, 55), (160, 93)], [(136, 131), (160, 131), (160, 93)]],
        stroke=PALE,
        stroke_width=1.4,
    )
    arrow(svg, (160, 93), (186, 93))
    arrow(svg, (326, 93), (376, 93))
    arrow(svg, (516, 93), (566, 93))
    for number, (name, text) in enumerate(
        (
            ("Verilog", "torusfabric verilog"),
            ("simulation", "torusfabric simulate"),
            ("proof", "torusfabric prove"),
            ("bitstream", "torusfabric build"),
        )
    ):
        y = 8 + 45 * number
        box(svg, (736, y, 120, 39), name, text, fill=GREEN)
        arrow(svg, (686, 93), (711, 93), (711, y + 19.5), (736, y + 19.5))
    for x, name in ((256, "tf.plan"), (446, "tf.compile"), (626, "tf.Fabric")):
        label(svg, x, 148, name, 10.5, text_anchor="middle")
    _draw_node(svg)
    return svg.render(880, 412, "From topology and collective to hardware")


def _draw_node(svg: Svg) -> None:
    """Draw a node of a fabric: sequencer, endpoint, router and their signals, with a legend."""
    label(svg, 20, 222, "One node of the fabric", 14, fill=INK, font_weight="bold")
    for number, text in enumerate(
        (
            "router: a register and a selector at each",
            "out-port; no buffer, no arbiter, no header",
            "endpoint: memories for what the node sends",
            "and what it receives, with address counters",
            "sequencer: one for all nodes; it presents",
            "the rows of the program, one by one",
        )
    ):
        label(svg, 20, 250 + 20 * number + 6 * (number // 2), text, 11.5)
    rectangle(svg, (396, 196, 444, 200), "#fafbfc", rx=8, stroke_width=1.4)
    box(svg, (420, 214, 130, 46), "sequencer", "row by row", fill=AMBER)
    box(svg, (420, 312, 130, 60), "endpoint", "memories", fill=GREEN)
    box(svg, (640, 270, 130, 70), "router", "crossbar, registers", fill=BLUE)
    arrow(svg, (550, 237), (705, 237), (705, 270), dashed=True)
    arrow(svg, (485, 260), (485, 312), dashed=True)
    label(svg, 560, 230, "selects")
    label(svg, 493, 292, "addresses")
    arrow(svg, (550, 326), (640, 326))
    label(svg, 556, 318, "sent")
    arrow(svg, (862, 324), (770, 324))
    arrow(svg, (800, 324), (800, 358), (550, 358))
    label(svg, 556, 376, "received")
    arrow(svg, (770, 288), (862, 288))
    label(svg, 778, 280, "4 arcs out", 11)
    label(svg, 778, 316, "4 arcs in", 11)
