"""What the harness writes down while a campaign runs, and how it becomes one history."""

from __future__ import annotations

import json
import os
import re
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

from tests.checker.facts import Record
from tests.checker.history import FORMAT

NODE_FIELDS = ("who", "node")


class Recorder:
    """Lines of one file, from any thread; each is in the file before its deed is begun."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC)
        self._lock = threading.Lock()
        self._calls = 0

    def close(self) -> None:
        os.close(self._file)

    def note(self, record: str, **fields: Any) -> float:
        """Gives the time at which it was written."""
        with self._lock:
            t = time.monotonic()
            line = json.dumps({"record": record, "t": t, **fields})
            os.write(self._file, f"{line}\n".encode())
        return t

    def fault(self, what: str, **fields: Any) -> float:
        """Is announced by this before it is made."""
        return self.note("fault", what=what, wall=time.time(), **fields)

    def call(self, op: str, who: str, **asked: Any) -> int:
        with self._lock:
            self._calls += 1
            number = self._calls
        self.note("call", id=number, op=op, who=f"client:{who}", **asked)
        return number

    def reply(self, call: int, status: str, **result: Any) -> None:
        self.note("reply", id=call, status=status, **result)


@attrs.frozen
class Evidence:
    """All that is known of a run. `names`: of nodes in events, by the names the harness gave."""

    header: Mapping[str, Any]
    files: tuple[Path, ...]  # of lines with `t`: the harness's own, and what handlers wrote
    end: tuple[Record, ...]  # events and the final state of the store
    names: Mapping[str, str]


def write_history(evidence: Evidence, path: Path) -> None:
    """Lines by their time; events and the end follow, as they are."""
    lines = [record for file in evidence.files for record in _lines_of(file)]
    lines.sort(key=lambda record: record["t"])
    first = lines[0]["t"] if lines else 0.0
    with path.open("w", encoding="utf-8") as history:
        _write(history, {"record": "header", "format": FORMAT, **evidence.header})
        for seq, record in enumerate(_placed(lines), start=1):
            record["t"] = round(record["t"] - first, 6)
            _write(history, _named({**record, "seq": seq}, evidence.names))
        for record in evidence.end:
            _write(history, record)


def _placed(lines: Iterable[Record]) -> Iterator[Record]:
    """A failover says when what may be lost began: as a time, which becomes a place."""
    times: list[float] = []
    for record in lines:
        since = record.pop("lost_since_t", None)
        if since is not None:
            record["lost_since"] = 1 + sum(1 for t in times if t < since)
        times.append(record["t"])
        yield record


def _named(record: Record, names: Mapping[str, str]) -> Record:
    for field in NODE_FIELDS:
        value = record.get(field)
        if isinstance(value, str):
            prefix, _, name = value.rpartition(":")
            if name in names:
                record[field] = f"{prefix}:{names[name]}" if prefix else names[name]
    return record


def _lines_of(file: Path) -> Iterator[Record]:
    if not file.exists():
        return
    with file.open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def names_of(events: Iterable[Record], process_ids: Mapping[int, str]) -> dict[str, str]:
    """By the harness's name: the one in events, which holds the process id."""
    found: dict[str, str] = {}
    for event in events:
        name = str((event.get("data") or {}).get("node", ""))
        told = re.search(r"-(\d+)-[0-9a-f]{6}$", name)
        if told is not None and int(told[1]) in process_ids:
            found[process_ids[int(told[1])]] = name
    return found


def _write(history: Any, record: Record) -> None:
    history.write(json.dumps(record, separators=(",", ":")) + "\n")
