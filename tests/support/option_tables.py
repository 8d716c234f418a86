"""What the pages under docs/ say of a job's options, made from the one table that declares them.

`make reference` brings them up to date.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator

from musterd.config.job_options import BEFORE_TENANT, OPTIONS, PRIORITY_MAX, PRIORITY_MIN, JobOption
from musterd.store.jobs import JOB_COLUMNS
from tests.support.pages import DOCS, page

CLIENT, HTTP, FUNCTIONS, VIEW = "clients.md", "http-api.md", "sql-functions.md", "sql.md"
_TABLE = re.compile(
    r"(?<=\| option \| value \| default \| what it does \| command line \|\n)(\|.*\n)+"
)
_SIGNATURE = re.compile(r"`enqueue\(kind text, [^`]*`")
_BODY = re.compile(r"(?<=`kind`, and optionally\n).*?\.\n", re.DOTALL)
WIDTH = 120
LITERAL = ("{}", "until_finished")
_COLUMNS = [option for option in OPTIONS if option.name in JOB_COLUMNS]


def pages() -> dict[str, str]:
    """Each page by its name, as it should be."""
    return {
        CLIENT: _renewed(CLIENT, _TABLE, "".join(_client_table())),
        HTTP: _renewed(HTTP, _BODY, _fields()),
        FUNCTIONS: _renewed(FUNCTIONS, _SIGNATURE, f"`{_signature()}`"),
        VIEW: _view_page(page(VIEW)),
    }


def _renewed(name: str, part: re.Pattern[str], new: str) -> str:
    text, count = part.subn(lambda _: new, page(name))
    assert count == 1, (
        f"docs/{name}: found {count} places for what is made of the options, wanted 1"
    )
    return text


def _client_table() -> Iterator[str]:
    yield "|---|---|---|---|---|\n"
    for one in OPTIONS:
        value = one.type.name
        if one.type.bounds is not None:
            value += f", {one.type.bounds[0]} to {one.type.bounds[1]}"
        elif "maxLength" in one.type.schema:
            value += f", 1 to {one.type.schema['maxLength']} characters"
        flags = ", ".join(f"`{flag}`" for flag in one.flags)
        default = f"`{one.default}`" if one.default in LITERAL else one.default
        yield f"| `{one.name}` | {value} | {default} | {_about(one)} | {flags} |\n"


def _about(option: JobOption) -> str:
    notes = [option.about]
    if option.excludes:
        notes.append(f"Excludes `{option.excludes}`.")
    if option.needs:
        notes.append(f"Needs `{option.needs}`.")
    return " ".join(notes)


def _fields() -> str:
    names = ", ".join(f"`{one.name}`" for one in OPTIONS)
    text = f"{names} (the [options](clients.md#options) of every interface) and `tenant`."
    return textwrap.fill(text, WIDTH, break_on_hyphens=False) + "\n"


def sql_arguments() -> Iterator[str]:
    """Those of the SQL function behind `kind`."""
    for one in OPTIONS:
        yield f"{one.name} {one.type.sql}"
        if one.name == BEFORE_TENANT:
            yield "tenant text"


def _signature() -> str:
    arguments = ", ".join(sql_arguments())
    return f"enqueue(kind text, {arguments}) returns bigint"


def _view_page(text: str) -> str:
    """The rows of options; a new one comes after the last of them."""
    last = ""
    for one in _COLUMNS:
        row = f"| `{one.name}` | {_column_type(one)} | yes | {one.about} |\n"
        head = f"| `{one.name}` | "
        if head in text:
            text = re.sub(f"{re.escape(head)}.*\n", row, text)
        else:
            text = text.replace(last, last + row)
        last = row
    return text


def _column_type(option: JobOption) -> str:
    return "smallint" if option.type.bounds == (PRIORITY_MIN, PRIORITY_MAX) else option.type.sql


if __name__ == "__main__":
    for name, text in pages().items():
        (DOCS / name).write_text(text, "utf-8")
