"""What the peers' benchmark asks of each contestant: setup, enqueue, latency, worker.

Run by its path, with PYTHONPATH on the peers' folder: `common` is theirs.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from musterd import Client
from musterd.console.command import musterd

common: Any = import_module("common")
CATALOG = Path(__file__).with_name("kinds.toml")
BATCH = 10_000


def main(words: Sequence[str]) -> None:
    """`setup`, `enqueue COUNT KIND`, `latency COUNT GAP_MS` or `worker CONCURRENCY KIND`."""
    match list(words):
        case ["setup"]:
            musterd(["db", "migrate", *_sets(f"store.url={common.DSN}")])
        case ["enqueue", count, kind]:
            _enqueue(int(count), f"peer-{kind}")
        case ["latency", count, gap_ms]:
            _enqueue_slowly(int(count), int(gap_ms) / 1000)
        case ["worker", concurrency, _kind]:
            import_module("musterd.manager.node.daemon")  # before the gun, as all contestants do
            common.gate()
            musterd(["run", *_settings(concurrency)])
        case _:
            sys.exit(main.__doc__)


def _enqueue(count: int, kind: str) -> None:
    with Client(common.DSN) as client:
        began = time.time()
        for chunk in common.chunks(count, BATCH):
            client.enqueue_many([(kind, {"i": number}) for number in chunk])
        common.done(n=count, secs=time.time() - began)


def _enqueue_slowly(count: int, gap_seconds: float) -> None:
    with Client(common.DSN) as client:
        noted = common.Lat()
        for number in range(count):
            began = time.time()
            client.enqueue("peer-noop", {"i": number})
            noted.add(number, began, time.time())
            time.sleep(gap_seconds)


def _settings(concurrency: str) -> list[str]:
    return _sets(
        f"store.url={common.DSN}",
        f"workers.default_count={concurrency}",
        f"workers.max_count={concurrency}",
        f'catalog.paths=["{CATALOG}"]',
        "http.listen=",
        "log.level=warning",
    )


def _sets(*settings: str) -> list[str]:
    return [word for one in settings for word in ("--set", one)]


main(sys.argv[1:])
