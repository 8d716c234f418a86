"""What the harness writes down while a campaign runs, and how it becomes one history."""

from __future__ import annotations

import heapq
import json
import os
import re
import threading
import time
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

from tests.checker.facts import Record
from tests.checker.history import FORMAT
from tests.checker.seen import data_of

NODE_FIELDS = ("who", "node")
OUT_OF_ORDER_MAX = 5000  # lines


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
    end: Iterable[Record]  # events and the final state of the store
    names: Mapping[str, str]


def write_history(evidence: Evidence, path: Path) -> None:
    """Lines by their time; events and the end follow, as they are."""
    lines = heapq.merge(*map(_in_order, evidence.files), key=_time)
    with path.open("w", encoding="utf-8") as history:
        _write(history, {"record": "header", "format": FORMAT, **evidence.header})
        for record in _placed(lines):
            _write(history, _named(record, evidence.names))
        for record in evidence.end:
            _write(history, record)


def _placed(lines: Iterable[Record]) -> Iterator[Record]:
    """Each gets its number. A failover says when what may be lost began: as a time, which becomes
    a number as well.
    """
    times = array("d")
    for seq, record in enumerate(lines, start=1):
        times.append(record["t"])
        since = record.pop("lost_since_t", None)
        if since is not None:
            record["lost_since"] = 1 + bisect_left(times, since)
        yield {**record, "seq": seq, "t": round(record["t"] - times[0], 6)}


def _in_order(file: Path) -> Iterator[Record]:
    """Of several who write at the same moment the later one may have been first."""
    kept: list[tuple[float, int, Record]] = []
    for number, record in enumerate(records(file)):
        heapq.heappush(kept, (record["t"], number, record))
        if len(kept) > OUT_OF_ORDER_MAX:
            yield heapq.heappop(kept)[2]
    while kept:
        yield heapq.heappop(kept)[2]


def _time(record: Record) -> float:
    t: float = record["t"]
    return t


def _named(record: Record, names: Mapping[str, str]) -> Record:
    for field in NODE_FIELDS:
        value = record.get(field)
        if isinstance(value, str):
            prefix, _, name = value.rpartition(":")
            if name in names:
                record[field] = f"{prefix}:{names[name]}" if prefix else names[name]
    return record


def records(file: Path) -> Iterator[Record]:
    with file.open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def names_of(events: Iterable[Record], process_ids: Mapping[int, str]) -> dict[str, str]:
    """By the harness's name: the one in events, which holds the process id."""
    found: dict[str, str] = {}
    for event in events:
        name = str(data_of(event).get("node", ""))
        told = re.search(r"-(\d+)-[0-9a-f]{6}$", name)
        if told is not None and int(told[1]) in process_ids:
            found[process_ids[int(told[1])]] = name
    return found


def _write(history: Any, record: Record) -> None:
    history.write(json.dumps(record, separators=(",", ":")) + "\n")
