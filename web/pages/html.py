"""HTML that cannot be made of unescaped text: a string is text, and only `Html` is markup. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TypeAlias
from urllib.parse import urlencode

from attrs import frozen

from musterd.store.words import one_line

VOID = frozenset({"br", "hr", "img", "input", "link", "meta"})
KEPT = "\n\t"  # of what cannot be printed


@frozen
class Html:
    """Markup, as it goes out. Made by `el` and `join` alone."""

    text: str


Content: TypeAlias = "Html | str | int | Sequence[Content] | None"
Value: TypeAlias = str | int | bool | None
EMPTY = Html("")


def el(tag: str, /, *content: Content, **attributes: Value) -> Html:
    """An element. `class_="x"` is `class`, `aria_label` is `aria-label`; True stands alone, None
    and False are left out.
    """
    start = f"<{tag}{''.join(_attribute(key, value) for key, value in attributes.items())}>"
    return Html(start if tag in VOID else f"{start}{_written(content)}</{tag}>")


def join(*content: Content) -> Html:
    return Html(_written(content))


def escaped(text: str) -> str:
    """The text as it may be in an element or a quoted attribute. Characters that a browser would
    obey without showing them (control characters, changes of direction, halves of characters) are
    spelt out.
    """
    if not text.isprintable():
        text = "".join(c if c.isprintable() or c in KEPT else one_line(c) for c in text)
    return escape(text)


def address(path: str, **query: str | int | Sequence[str] | None) -> str:
    """A path of ours with a query; what is None or empty is left out."""
    pairs: list[tuple[str, str | int]] = []
    for name, value in query.items():
        if isinstance(value, str | int):
            pairs += [(name, value)] if value != "" else []
        elif value:
            pairs += [(name, one) for one in value]
    # Halves of characters come in by JSON; no URL has them.
    text = urlencode(pairs, errors="replace")
    return f"{path}?{text}" if text else path


def link(to: str, *content: Content, **attributes: Value) -> Html:
    return el("a", *content, href=to, **attributes)


def _written(content: Content) -> str:
    if content is None:
        return ""
    if isinstance(content, Html):
        return content.text
    if isinstance(content, str):
        return escaped(content)
    if isinstance(content, int):
        return str(content)
    return "".join(map(_written, content))


def _attribute(name: str, value: Value) -> str:
    if value is None or value is False:
        return ""
    shown = name.rstrip("_").replace("_", "-")
    return f" {shown}" if value is True else f' {shown}="{escaped(str(value))}"'
