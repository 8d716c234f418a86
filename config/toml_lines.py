"""On which line of a TOML text each key stands: the parser does not say, an operator wants it."""

import bisect
import re

import tomli

KeyPath = tuple[str | int, ...]

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
    """Gives the line (from 1) of every key, table and list element of `text`.

    `text` must be TOML that the parser accepts. A table that is only implied, as `a` by
    `[a.b]`, stands where it is first implied. Raises RecursionError where the parser does.
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
            parts.append(_spoken(self._take(_KEY_PART)))
            self._skip(_SPACE)
        return parts

    def _value(self, path: KeyPath) -> None:
        first = self._text[self._at]
        if first == "[":
            self._list(path)
        elif first == "{":
            self._inline_table(path)
        else:
            self._skip(_STRING if first in "\"'" else _SCALAR)

    def _list(self, path: KeyPath) -> None:
        index = 0
        while self._goes_on("]"):
            self._value(self._mark((*path, index), self._line()))
            index += 1

    def _inline_table(self, path: KeyPath) -> None:
        while self._goes_on("}"):
            self._key_and_value(path)

    def _goes_on(self, closing: str) -> bool:
        """Steps over `[`, `{` or `,` to the next element; over `closing` when there is none."""
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


def _spoken(part: str) -> str:
    return str(tomli.loads(f"k={part}")["k"]) if part[0] in "\"'" else part
