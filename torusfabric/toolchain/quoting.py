r"""Words of others within text of ours: one function for each language that it is written in.

Names of files, algorithms and commands may hold anything. Where they become part of a program, a
script or a page they stay what they are: a word, a comment, a cell.
"""

import json
import re
import shlex
from collections.abc import Iterable, Mapping

__all__ = ["facts_table", "filled", "line_comment", "markdown_code",
           "script_json", "shell_command", "tcl_text", "visible", "xml_attribute",
           "xml_text"]  # fmt: skip

#: What XML 1.0 cannot hold at all.
_NO_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def visible(text: str, keep: str = "") -> str:
    r"""A text in which everything can be seen: other characters become escapes.

    Parameters
    ----------
    keep : str
        Characters that stay as they are.

    Examples
    --------
    >>> print(visible("a\x1b[31mb\n"))
    a\x1b[31mb\n
    """
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() or char in keep else char.encode("unicode_escape").decode()
        for char in text
    )


def line_comment(text: str, mark: str = "//") -> str:
    r"""A comment to the end of its line, in Verilog, C++, Tcl, shell or Make.

    A backslash at the end would continue it in some of them.

    Examples
    --------
    >>> print(line_comment("a\nmodule b; \\"))
    // a\nmodule b; \.
    """
    line = f"{mark} {visible(text)}"
    return f"{line}." if line.endswith("\\") else line


def shell_command(words: Iterable[str]) -> str:
    r"""Words as a command for a shell, on one line that can be seen and copied.

    Examples
    --------
    >>> print(shell_command(["cat", "my file", "a\nb"]))
    cat 'my file' $'a\nb'
    """
    return " ".join(
        shlex.quote(word) if word.isprintable() else f"$'{_in_dollars(word)}'" for word in words
    )


def _in_dollars(word: str) -> str:
    """What stands between the quotes: bytes of what cannot be seen, as of a name of a file."""
    return "".join(
        ("\\" if char in "\\'" else "") + char
        if char.isprintable()
        else {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(char)
        or "".join(f"\\{byte:03o}" for byte in char.encode("utf-8", "surrogateescape"))
        for char in word
    )


def markdown_code(text: str) -> str:
    """Code on one line of a page in Markdown.

    Examples
    --------
    >>> markdown_code("a"), markdown_code("a `b`")
    ('`a`', '`` a `b` ``')
    """
    text = visible(text)
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence, space = "`" * (longest + 1), " " * (longest > 0)
    return f"{fence}{space}{text}{space}{fence}"


def xml_text(text: str) -> str:
    r"""Text of XML, SVG or HTML, also between the quotes of an attribute.

    Examples
    --------
    >>> print(xml_text("a < b\x00"))
    a &lt; b\x00
    """
    import html  # here, since few texts are XML

    return html.escape(_NO_XML.sub(lambda found: visible(found[0]), text))


def xml_attribute(text: str) -> str:
    """The value of an attribute, with its quotes.

    Examples
    --------
    >>> print(xml_attribute('say "a"'))
    "say &quot;a&quot;"
    """
    return f'"{xml_text(text)}"'


def tcl_text(text: str) -> str:
    """Return a text for a word in braces of Tcl, which carries nothing out in it.

    Braces and backslashes are left out: they end a word, or may hide its end.

    Examples
    --------
    >>> tcl_text("} ; exit [x] $y")
    ' ; exit [x] $y'
    """
    return visible(text).translate(dict.fromkeys(map(ord, "{}\\")))


def script_json(value: object) -> str:
    r"""Return a value as JSON that an HTML page can hold in a script element.

    Examples
    --------
    >>> print(script_json(["</script><!--", "\u2028"]))
    ["\u003c/script>\u003c!--","\u2028"]
    """
    return json.dumps(value, separators=(",", ":")).replace("<", r"\u003c")


def filled(template: str, values: Mapping[str, str]) -> str:
    """A template in which each ``@NAME@`` is replaced at once: what is filled in stays as it is.

    Examples
    --------
    >>> filled("@A@ @B@", {"A": "@B@", "B": "b"})
    '@B@ b'
    """
    return re.sub("@([A-Z]+)@", lambda found: values.get(found[1], found[0]), template)


#: Names stand left of their values, numbers below one another.
_CELL = "text-align:left;vertical-align:top"


def facts_table(title: str, facts: Mapping[str, object]) -> str:
    """Names and values as an HTML table, with a title above.

    Examples
    --------
    >>> facts_table("net", {"nodes": "<16>"}).count("<tr>")
    1
    >>> "&lt;16&gt;" in facts_table("net", {"nodes": "<16>"})
    True
    """
    rows = "".join(
        f'<tr><th style="{_CELL}">{xml_text(name)}</th>'
        f'<td style="{_CELL}">{xml_text(str(value))}</td></tr>'
        for name, value in facts.items()
    )
    head = f'<caption style="{_CELL};font-weight:bold">{xml_text(title)}</caption>'
    return f"<table>{head}{rows}</table>"
