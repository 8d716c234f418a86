"""The configuration in its layers: files, variables, arguments."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from random import Random

import attrs
import tomli

from musterd.config.faults import ConfigError
from musterd.config.load import SHIPPED_FILE, Loaded, load
from musterd.config.settings import keys
from musterd.config.show import as_text, as_tree
from tests.fuzz.mutating import changed, crossed
from tests.fuzz.target import Wrong

SECRET = "hunter2"
NAMES_A_FILE = re.compile(r"\w+_file = ")
ABSENT = Path("/nonexistent/musterd.toml")
VALUES = (
    *("0", "1", "-1", "3", "0.5", "1e3", "1e999", "nan", "inf", "-0", "0x10", "1_000", "9" * 40),
    *("true", "false", '""', '"a"', "''", '"\\u0000"', '"\\ud800"', "[]", "[1]", '["a", "b"]'),
    *("{}", "{ a = 1 }", "[[1]]", "2030-01-01", "2030-01-01T09:00:00Z", "09:00:00", "'''x'''"),
    *('"sqlite:///x.db"', '"postgresql://u:hunter2@h:5432/d?sslmode=x"', '"postgresql://[::1"'),
    *(
        '"127.0.0.1:9477"',
        '"[::1]:1"',
        '":99999"',
        '"unix:/x"',
        '"whsec_aGVsbG8="',
        '"*/5 * * * *"',
    ),
    *('"Europe/Berlin"', '"../etc"', '"python:a:b"', '"https://example.com/"', '"ä"', '"\\t"'),
)
NAMES = (
    *("tenants.acme", "tenants.acme.workers", "tenants.default.limits", "schedules.nightly"),
    *("retention.succeeded", "nonsense", "tenants", "schedules", '"a.b"', "workers.x"),
)
OF_NAMED = ("kind", "cron", "every_seconds", "timezone", "payload", "url", "schema", "max_count",
            "default_count", "missed", "overlap", "enabled", "max_running", "target")  # fmt: skip
PIECES = (
    *(b"\0", b"\n", b"\r\n", b"[", b"]", b"[[", b"]]", b"=", b".", b"#", b'"', b"'", b'"""', b"{"),
    *(
        b"}",
        b",",
        b"\xff\xfe",
        b"\xed\xa0\x80",
        b"\xef\xbb\xbf",
        b"9" * 5000,
        b"[" * 2000,
        b"1e999",
    ),
    *(b"__", b"MUSTERD_", b"\\u0000", b"\\ud800", b"\\U00110000", b" ", b"\t", b"nan", b"-"),
    *(b"a." * 500, b"{a=" * 500, b"\x7f", b"\xc2\x85", b"\xe2\x80\xa8"),
)


@cache
def shipped_lines() -> tuple[bytes, ...]:
    return tuple(SHIPPED_FILE.read_bytes().splitlines(keepends=True))


def toml_file(rng: Random) -> bytes:
    """Tables and keys that exist, mostly, with values that mostly do not fit."""
    lines = list[str]()
    for _ in range(rng.randint(1, 4)):
        section, _, _ = rng.choice(list(keys())).partition(".")
        lines.append(f"[{section if rng.random() < 0.7 else rng.choice(NAMES)}]")
        inside = [key.partition(".")[2] for key in keys() if key.startswith(f"{section}.")]
        for _ in range(rng.randint(0, 4)):
            name = rng.choice(inside if rng.random() < 0.8 else OF_NAMED)
            lines.append(f"{name} = {rng.choice(VALUES)}")
    return "\n".join(lines).encode()


def some_shipped(rng: Random) -> bytes:
    lines = shipped_lines()
    start = rng.randrange(len(lines))
    return b"".join(lines[start : start + rng.randint(1, 30)])


def assignment(rng: Random) -> tuple[str, str]:
    """A key and a value, as variables and arguments say it."""
    key = rng.choice(list(keys()))
    if rng.random() < 0.3:
        key = f"{rng.choice(NAMES)}.{rng.choice(OF_NAMED)}"
    value = rng.choice(VALUES)
    return key, value.strip('"') if rng.random() < 0.5 else value


@attrs.frozen
class Settings:
    """`make_whole`: an input that is mostly well formed; `load`: takes it as its layer."""

    name: str
    share: int
    make_whole: Callable[[Random], bytes]
    load: Callable[[bytes], Loaded]

    def make(self, rng: Random, corpus: Sequence[bytes]) -> bytes:
        whole = self.make_whole(rng)
        if rng.random() < 0.1 and corpus:
            whole = crossed(rng, whole, rng.choice(corpus))
        return whole if rng.random() < 0.4 else changed(rng, whole, PIECES, 3)

    def check(self, whole: bytes) -> None:
        try:
            loaded = self.load(whole)
        except ConfigError as refused:
            if not refused.faults or any(not line.strip() for line in str(refused).split("\n")):
                raise Wrong(f"a refusal that says nothing: {refused}") from None
            return
        unknown = set(loaded.origins) - set(keys())
        if any(not key.startswith(("tenants.", "schedules.")) for key in unknown):
            raise Wrong(f"keys that do not exist: {unknown}")
        text = as_text(loaded, origin=True)
        if tomli.loads(text) != as_tree(loaded, origin=False):
            raise Wrong("what is shown is not what is in effect")
        # The name of a file is no secret.
        if any(SECRET in line for line in text.splitlines() if not NAMES_A_FILE.match(line)):
            raise Wrong("a secret is shown")


def of_file(whole: bytes) -> Loaded:
    file = Path(_folder().name) / "musterd.toml"
    file.write_bytes(whole)
    return load(file, {}, [])


def of_environment(whole: bytes) -> Loaded:
    return load(None, _variables(whole), [], ABSENT)


def of_arguments(whole: bytes) -> Loaded:
    return load(None, {}, os.fsdecode(whole).split("\0"), ABSENT)


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="musterd-fuzz-")


def _variables(whole: bytes) -> Mapping[str, str]:
    """As a system has them: bytes that are no UTF-8 are surrogates, and none is NUL."""
    pairs = (os.fsdecode(one).partition("=") for one in whole.split(b"\0"))
    return {name: value for name, found, value in pairs if found and name}


def variables(rng: Random) -> bytes:
    found = [assignment(rng) for _ in range(rng.randint(1, 3))]
    names = [key.upper().replace(".", "__") for key, _ in found]
    pairs = (f"MUSTERD_{name}={value}" for name, (_, value) in zip(names, found, strict=True))
    return "\0".join(pairs).encode("utf-8", "surrogatepass")


def arguments(rng: Random) -> bytes:
    found = (assignment(rng) for _ in range(rng.randint(1, 3)))
    return "\0".join(f"{key}={value}" for key, value in found).encode("utf-8", "surrogatepass")


def files(rng: Random) -> bytes:
    return toml_file(rng) if rng.random() < 0.7 else some_shipped(rng)


FILES = Settings("config_file", 5, files, of_file)
ENVIRONMENT = Settings("environment", 4, variables, of_environment)
ARGUMENTS = Settings("arguments", 4, arguments, of_arguments)
