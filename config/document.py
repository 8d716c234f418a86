"""One source of settings - a file, a variable, an argument - and where each of its keys stands."""

from collections.abc import Mapping
from pathlib import Path
from typing import cast

import tomli
from attrs import field, frozen

from musterd.config.faults import ConfigError, Fault
from musterd.config.toml_lines import KeyPath, key_lines


@frozen
class Document:
    """Tables of values from one source; `folder` is what its relative paths start from."""

    source: str
    data: Mapping[str, object]
    folder: Path
    lines: Mapping[KeyPath, int] = field(factory=dict[KeyPath, int])

    def at(self, path: KeyPath) -> object:
        """Gives what stands at `path`, which must exist."""
        found: object = self.data
        for part in path:
            found = cast(Mapping[str | int, object], found)[part]
        return found

    def line(self, path: KeyPath) -> int | None:
        """Gives the line of a key, where the source has lines."""
        return self.lines.get(path)

    def origin(self, path: KeyPath) -> str:
        """Says where the value at `path` comes from, as `--origin` shows it."""
        line = self.line(path)
        return self.source if line is None else f"{self.source}:{line}"


def read_document(path: Path) -> Document:
    """Reads a TOML file; raises ConfigError if it cannot be read or is not TOML."""
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
