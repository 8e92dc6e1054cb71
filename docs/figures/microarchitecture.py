"""Block diagrams of a fabric: its parts, a router, an endpoint and the pipeline."""

from diagram_shapes import AMBER, BLUE, GREEN, INK, LINK, PALE, arrow, box

from torusfabric.draw.svg import Svg

__all__ = ["endpoint", "fabric", "pipeline", "router"]


def fabric() -> str:
    """Return a picture of sequencer, control tree, nodes with their links, and host."""
    svg = Svg()
    box(svg, (24, 30, 150, 56), "sequencer", "rows of the program", fill=AMBER)
    box(svg, (24, 230, 150, 56), "host", "addresses, once for all", fill=AMBER)
    for row, y in enumerate((30, 130, 230)):
        box(svg, (236, y + 8, 84, 40), "register", "of a group")
        arrow(svg, (174, 58), (205, 58), (205, y + 28), (236, y + 28))
        for column, x in enumerate((370, 490, 610)):
            box(svg, (x, y, 84, 56), f"node {3 * row + column}", "router, endpoint", fill=BLUE)
            arrow(svg, (320 if not column else x - 36, y + 44), (x, y + 44), dashed=True)
            svg.add_lines([[(x + 84, y + 16), (x + 120, y + 16)]], stroke=LINK, stroke_width=2)
            svg.add_lines([[(x + 22, y + 56), (x + 22, y + 100)]], stroke=LINK, stroke_width=2)
    arrow(svg, (99, 86), (99, 230))
    svg.add_text(110, 160, "idle or busy", 10.5, fill=PALE)
    svg.add_text(
        370, 352, "blue: links, a word each way in every cycle; dashed: control", 11, fill=PALE
    )
    return svg.render(760, 370, "A fabric: one sequencer, a router and an endpoint at every node")


def router() -> str:
    """Return a picture of a router: its inputs, and a multiplexer and a register per out-port."""
    svg = Svg()
    ports = ("+0", "-0", "+1", "-1")
    buses = [150 + 14 * number for number in range(5)]
    for number, (port, x) in enumerate(zip((*ports, "inject"), buses, strict=True)):
        y = 46 + 22 * number
        svg.add_text(24, y + 4, f"in {port}" if number < 4 else port, 12, fill=INK)
        svg.add_lines([[(72, y), (x, y), (x, 392)]], stroke=PALE, stroke_width=1)
    for number, port in enumerate(ports):
        y = 166 + 58 * number
        box(svg, (270, y, 120, 40), "multiplexer", "the inputs in use", fill=BLUE)
        inputs = [k for k in range(5) if k != number]
        for place, k in enumerate(inputs):
            bus, pin = buses[k], y + 8 + 8 * place
            svg.add_lines([[(bus, pin), (270, pin)]], stroke=PALE, stroke_width=1)
            svg.add_element("circle", cx=bus, cy=pin, r=2.4, fill=PALE)
        box(svg, (450, y, 90, 40), "register")
        arrow(svg, (390, y + 20), (450, y + 20))
        arrow(svg, (540, y + 20), (600, y + 20))
        svg.add_text(608, y + 24, f"out {port}", 12, fill=INK)
        arrow(svg, (330, 116 if not number else y - 18), (330, y), dashed=True)
    box(svg, (250, 62, 160, 54), "select registers", "from column or ROM", fill=AMBER)
    return svg.render(680, 412, "A router: a multiplexer and a register for each out-port")


def endpoint() -> str:
    """Return a picture of an endpoint: memories, readers, injection ports and memory port."""
    svg = Svg()
    ports = ("+0", "-0", "+1", "-1")
    box(svg, (150, 40, 150, 44), "send memory", "data of this node", fill=GREEN)
    for number, port in enumerate(ports):
        y = 108 + 60 * number
        svg.add_text(24, y + 26, f"in {port}", 12, fill=INK)
        arrow(svg, (66, y + 22), (150, y + 22))
        box(svg, (150, y, 150, 44), f"memory of {port}", "received words", fill=GREEN)
    for number in range(5):
        y = 62 + 60 * number + (8 if number else 0)
        svg.add_lines([[(300, y), (350, y)]], stroke=PALE, stroke_width=1.2)
    svg.add_lines([[(350, 62), (350, 310)]], stroke=PALE, stroke_width=1.2)
    box(svg, (410, 90, 130, 50), "readers", "for injection ports")
    arrow(svg, (350, 115), (410, 115))
    arrow(svg, (540, 115), (600, 115))
    svg.add_text(608, 119, "inject, to the router", 12, fill=INK)
    box(svg, (410, 220, 130, 50), "memory port", "between runs")
    arrow(svg, (350, 245), (410, 245))
    arrow(svg, (540, 245), (600, 245))
    svg.add_text(608, 249, "read data", 12, fill=INK)
    box(svg, (150, 370, 150, 50), "addresses", "base + flit * pitch", fill=AMBER)
    arrow(svg, (225, 370), (225, 332), dashed=True)
    return svg.render(760, 440, "An endpoint: a memory for each in-port, readers, a memory port")


def pipeline() -> str:
    """Return a picture of the pipeline stages of a row and a flit, cycle by cycle."""
    svg = Svg()
    stages = (
        ("slot", "the ROM shows", "the row"),
        ("1", "register of", "the group"),
        ("2", "register in", "the node"),
        ("3", "addresses at", "the memories"),
        ("4", "words read,", "selects set"),
        ("5", "word on its", "first link"),
        ("5 + hops - 1", "word at the", "receiver, stored"),
    )
    for number, (cycle, first, second) in enumerate(stages):
        x = 24 + 118 * number
        fill = AMBER if number < 3 else GREEN if number == 3 else BLUE
        svg.add_text(x + 50, 24, cycle, 11, fill=PALE, text_anchor="middle")
        box(svg, (x, 34, 100, 50), "", fill=fill)
        for line, text in enumerate((first, second)):
            svg.add_text(x + 50, 56 + 15 * line, text, 11, fill=INK, text_anchor="middle")
        if number:
            arrow(svg, (x - 18, 59), (x, 59))
    svg.add_text(
        24,
        108,
        "cycles after the slot; the next row or flit follows one cycle later",
        11,
        fill=PALE,
    )
    return svg.render(856, 124, "From the sequencer to a word at its receiver, cycle by cycle")
