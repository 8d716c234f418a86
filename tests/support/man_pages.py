"""The manual pages under docs/man, made from the tree of verbs and the shipped settings.

`python -m tests.support.man_pages` brings them up to date.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import click

from musterd import __version__
from musterd.console.command import SECTIONS, SHARED_OPTIONS, musterd
from musterd.console.output import Exit
from tests.support.man_texts import (
    DESCRIPTION,
    ENVIRONMENT,
    EXAMPLES,
    EXITS,
    FILES,
    RELEASED,
    SIGNALS,
    TOML_DESCRIPTION,
    TOML_EXAMPLE,
    Rows,
)
from tests.support.pages import DOCS
from tests.support.settings_table import shipped

FOLDER = DOCS / "man"
_CODE = re.compile(r"`([^`]+)`")
_SENTENCE = re.compile(r"(?<=[.:;]) +(?=[A-Z`\[])")
_SHARED = frozenset(option.name for option in SHARED_OPTIONS)


def pages() -> dict[str, str]:
    """Each page by the name of its file."""
    return {
        "musterd.1": "\n".join([*_head("MUSTERD", 1), *_command_page()]) + "\n",
        "musterd.toml.5": "\n".join([*_head("MUSTERD.TOML", 5), *_toml_page()]) + "\n",
    }


def escaped(text: str) -> str:
    """A text as troff reads it: nothing in it is a request, an escape or a soft hyphen."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{text}" if text.startswith((".", "'")) else text


def _head(name: str, section: int) -> list[str]:
    # The day is the version's: a page must not change with the day on which it was made.
    return [
        '.\\" Made by tests/support/man_pages.py.',
        f'.TH {name} {section} "{RELEASED[__version__]}" "musterd {__version__}" "musterd manual"',
    ]


def _command_page() -> Iterator[str]:
    yield from (
        ".SH NAME",
        "musterd \\- durable jobs under leases, run by a crew that fits the queue",
    )
    yield from (".SH SYNOPSIS", ".B musterd", ".RI [ options ]", ".I command", ".RI [ arguments ]")
    yield ".SH DESCRIPTION"
    yield from _paragraphs(DESCRIPTION)
    yield ".SH OPTIONS"
    yield "These stand before or after the command."
    yield from _options([*SHARED_OPTIONS])
    yield ".SH COMMANDS"
    yield "Each command explains itself with"
    yield from (".BR \\-\\-help ,", "and those that read print JSON with", ".BR \\-\\-json .")
    for section, verbs in SECTIONS.items():
        yield f'.SS "{escaped(section)}"'
        for verb in verbs:
            yield from _verb([verb], musterd.commands[verb])
    for heading, rows in (
        ("FILES", FILES),
        ("ENVIRONMENT", ENVIRONMENT),
        ("EXIT STATUS", [(str(int(code)), EXITS[code]) for code in Exit]),
        ("SIGNALS", SIGNALS),
    ):
        yield f".SH {heading}"
        yield from _rows(rows)
    yield ".SH EXAMPLES"
    yield from _rows(EXAMPLES)
    yield from (".SH SEE ALSO", ".BR musterd.toml (5),", ".BR systemctl (1)")


def _verb(path: Sequence[str], verb: click.Command) -> Iterator[str]:
    if isinstance(verb, click.Group) and not verb.invoke_without_command:
        for name, below in verb.commands.items():
            yield from _verb([*path, name], below)
        return
    words = " ".join(escaped(word) for word in path)
    yield ".TP"
    yield f"\\fB{words}\\fR{''.join(f' {one}' for one in _usage(verb))}"
    yield from _sentences(verb.help or "")
    options = [one for one in verb.params if isinstance(one, click.Option)]
    if options:
        yield ".RS"
        yield from _options(options)
        yield ".RE"
    if isinstance(verb, click.Group):
        for name, below in verb.commands.items():
            yield from _verb([*path, name], below)


def _usage(verb: click.Command) -> Iterator[str]:
    for one in verb.params:
        if isinstance(one, click.Argument):
            name = one.metavar or str(one.name).upper()
            yield f"\\fI{escaped(name)}\\fR"


def _options(options: Iterable[click.Option]) -> Iterator[str]:
    for one in options:
        names = ", ".join(f"\\fB{escaped(name)}\\fR" for name in [*one.opts, *one.secondary_opts])
        yield ".TP"
        yield names if one.is_flag else f"{names} \\fI{escaped(_value(one))}\\fR"
        yield from _sentences(one.help or "See above.")


def _value(option: click.Option) -> str:
    if option.metavar:
        return option.metavar
    if isinstance(option.type, click.Choice):
        return "|".join(str(choice) for choice in option.type.choices)
    return str(option.name).upper()


def _rows(rows: Rows) -> Iterator[str]:
    for name, text in rows:
        yield from (".TP", f"\\fB{escaped(name)}\\fR")
        yield from _sentences(text)


def _paragraphs(text: str) -> Iterator[str]:
    for number, part in enumerate(text.strip().split("\n\n")):
        if number:
            yield ".PP"
        yield from _sentences(part)


def _sentences(text: str) -> Iterator[str]:
    """One a line, as troff likes them; what is code is bold."""
    for number, part in enumerate(text.strip().split("\n\n")):
        if number:
            yield ".IP"
        for sentence in _SENTENCE.split(" ".join(part.split())):
            pieces = _CODE.split(sentence)
            shown = [escaped(one) if not n % 2 else f"\\fB{escaped(one)}\\fR"
                for n, one in enumerate(pieces)]  # fmt: skip
            yield "".join(shown)


def _toml_page() -> Iterator[str]:
    yield from (".SH NAME", "musterd.toml \\- settings of musterd")
    yield from (".SH SYNOPSIS", ".I /etc/musterd/musterd.toml")
    yield ".SH DESCRIPTION"
    yield from _paragraphs(TOML_DESCRIPTION)
    yield ".SH SETTINGS"
    yield "Each with its default."
    for line in shipped():
        if not line.name:
            yield f'.SS "[{escaped(line.section)}]"'
            yield from _sentences(line.what)
            continue
        yield from (".TP", f"\\fB{escaped(line.name)}\\fR = {escaped(line.default)}")
        yield from _sentences(f"{line.what[:1].upper()}{line.what[1:]}.")
    yield from (".SH EXAMPLES", ".nf", *map(escaped, TOML_EXAMPLE.strip().splitlines()), ".fi")
    yield from (".SH SEE ALSO", ".BR musterd (1)")


if __name__ == "__main__":
    for file, text in pages().items():
        (Path(FOLDER) / file).write_text(text, "utf-8")
