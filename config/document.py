"""One source of settings (a file, a variable, an argument), and the lines of its keys."""

import bisect
import re
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import tomli
from attrs import field, frozen

from musterd.config.faults import ConfigError, Fault

KeyPath = tuple[str | int, ...]


@frozen
class Document:
    """Values from one source; its relative paths start from `folder`."""

    source: str
    data: Mapping[str, object]
    folder: Path
    lines: Mapping[KeyPath, int] = field(factory=dict[KeyPath, int])

    def at(self, path: KeyPath) -> object:
        """The value at `path`, which must exist."""
        found: object = self.data
        for part in path:
            found = cast(Mapping[str | int, object], found)[part]
        return found

    def line(self, path: KeyPath) -> int | None:
        """The line of a key, if the source has lines."""
        return self.lines.get(path)

    def origin(self, path: KeyPath) -> str:
        """Where the value at `path` comes from, as `--origin` shows it."""
        line = self.line(path)
        return self.source if line is None else f"{self.source}:{line}"


def read_document(path: Path) -> Document:
    """Raises ConfigError if the file cannot be read or is not TOML."""
    text = _read_text(path)
    data = _parse(text, path)
    try:
        lines = key_lines(text)
    except RecursionError:
        raise _nested_too_deep(path) from None
    return Document(str(path), data, path.parent.absolute(), lines)


def _parse(text: str, path: Path) -> dict[str, object]:
    try:
        return tomli.loads(text)
    except tomli.TOMLDecodeError as error:
        found = f"not TOML: {error.msg} (column {error.colno})"
        raise ConfigError([Fault(str(path), error.lineno, found=found)]) from None
    except RecursionError:
        raise _nested_too_deep(path) from None
    except ValueError:  # the interpreter refuses to read thousands of digits
        raise _unusable(path, "not usable: a number has too many digits") from None


def _read_text(path: Path) -> str:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise _unusable(path, f"cannot be read: {error.strerror}") from None
    try:
        return content.decode().replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        fault = Fault(str(path), line, found="not UTF-8", hint="save the file as UTF-8")
        raise ConfigError([fault]) from None


def _unusable(path: Path, found: str) -> ConfigError:
    return ConfigError([Fault(str(path), found=found)])


def _nested_too_deep(path: Path) -> ConfigError:
    return _unusable(path, "not usable: lists or tables are nested too deep")


_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_SPACE = re.compile(r"[ \t]*")
_KEY_PART = re.compile(r"\"(?:\\.|[^\"\\\n])*\"|'[^'\n]*'|[^\s.=\]\"'#,{}]+")
_STRING = re.compile(
    r'"""(?:\\.|[^\\])*?"""(?:"{0,2})'  # up to two quotes may stand before the closing three
    r"|'''.*?'''(?:'{0,2})"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'[^'\n]*'",
    re.DOTALL,
)
_SCALAR = re.compile(r"[^,\]}#\n]+")


def key_lines(text: str) -> dict[KeyPath, int]:
    """The line (from 1) of every key, table and list element of `text`, which must be valid TOML. A
    table that is only implied, as `a` by `[a.b]`, has the line of that. May raise RecursionError.
    """
    return _Scanner(text).scan()


class _Scanner:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._newlines = [found.start() for found in re.finditer("\n", text)]
        self._lines: dict[KeyPath, int] = {}
        self._array_sizes: dict[KeyPath, int] = {}

    def scan(self) -> dict[KeyPath, int]:
        table: KeyPath = ()
        self._skip(_BLANK)
        while self._at < len(self._text):
            if self._text[self._at] == "[":
                table = self._header()
            else:
                self._key_and_value(table)
            self._skip(_BLANK)
        return self._lines

    def _header(self) -> KeyPath:
        is_array = self._text.startswith("[[", self._at)
        line = self._line()
        self._at += 2 if is_array else 1
        *parents, last = self._key()
        self._at += 2 if is_array else 1
        table: KeyPath = ()
        for part in parents:
            table = self._newest(self._mark((*table, part), line))
        table = self._mark((*table, last), line)
        if not is_array:
            return table
        self._array_sizes[table] = self._array_sizes.get(table, 0) + 1
        return self._mark(self._newest(table), line)

    def _newest(self, table: KeyPath) -> KeyPath:
        size = self._array_sizes.get(table)
        return table if size is None else (*table, size - 1)

    def _key_and_value(self, table: KeyPath) -> None:
        line = self._line()
        path = table
        for part in self._key():
            path = self._mark((*path, part), line)
        self._at += 1  # the equals sign
        self._skip(_SPACE)
        self._value(path)

    def _key(self) -> list[str]:
        parts: list[str] = []
        while not parts or self._text[self._at] == ".":
            self._at += 1 if parts else 0
            self._skip(_SPACE)
            part = self._take(_KEY_PART)
            parts.append(str(tomli.loads(f"k={part}")["k"]) if part[0] in "\"'" else part)
            self._skip(_SPACE)
        return parts

    def _value(self, path: KeyPath) -> None:
        first = self._text[self._at]
        if first == "[":
            self._list(path)
        elif first == "{":
            while self._goes_on("}"):
                self._key_and_value(path)
        else:
            self._skip(_STRING if first in "\"'" else _SCALAR)

    def _list(self, path: KeyPath) -> None:
        index = 0
        while self._goes_on("]"):
            self._value(self._mark((*path, index), self._line()))
            index += 1

    def _goes_on(self, closing: str) -> bool:
        """Steps over `[`, `{` or `,` to the next element, or over `closing` if there is none."""
        self._skip(_BLANK)
        if self._text[self._at] != closing:
            self._at += 1
            self._skip(_BLANK)
        if self._text[self._at] != closing:
            return True
        self._at += 1
        return False

    def _mark(self, path: KeyPath, line: int) -> KeyPath:
        self._lines.setdefault(path, line)
        return path

    def _line(self) -> int:
        return bisect.bisect_left(self._newlines, self._at) + 1

    def _take(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self._text, self._at)
        if found is None:
            raise ValueError(f"line {self._line()}: not the TOML that the parser has accepted")
        self._at = found.end()
        return found.group()

    def _skip(self, pattern: re.Pattern[str]) -> None:
        self._take(pattern)
