"""A real daemon tells a function of the user's of jobs that go, and keeps a copy of them."""

import json
import signal
from pathlib import Path
from typing import Any

from tests.support.command import Home, eventually

HOOKS = '''
import json, os

def told(job):
    """Fails once for each job: it is told again."""
    mark = f"{os.path.dirname(__file__)}/{job.kind}-{job.payload['data']['id']}"
    first = not os.path.exists(mark)
    open(mark, "a").close()
    if first:
        raise OSError("not yet")
    with open(mark + ".json", "w") as file:
        json.dump(job.payload, file)
'''
HOURS = 1 / 3600


def test_old_jobs_are_told_kept_elsewhere_and_deleted(machine: Home, tmp_path: Path) -> None:
    archive = tmp_path / "ended.jsonl"
    (tmp_path / "hooks.py").write_text(HOOKS)
    options = {
        "retention.stale_after_hours": 1 * HOURS,
        "retention.delete_after_hours": 3 * HOURS,
        "retention.interval_seconds": 1,
        "retention.on_stale": "hooks:told",
        "retention.on_delete": "hooks:told",
        "retention.archive": str(archive),
        "catalog.python_path": f'["{tmp_path}"]',
        "webhooks.retry_base_seconds": 0.1,
    }
    sets = [part for key, value in options.items() for part in ("--set", f"{key}={value}")]
    with machine.daemon(*sets) as daemon:
        daemon.wait_until_ready()
        made = machine.call("enqueue", "report", "--payload", '{"a": [1]}', "--json").json["id"]

        def is_told(what: str) -> bool:
            return (tmp_path / f"job.{what}-{made}.json").exists()

        eventually(lambda: is_told("stale") and is_told("deleted"), seconds=60)
        assert machine.call("job", str(made)).code == 3
        daemon.send(signal.SIGTERM)
        assert daemon.end() == 0
    (kept,) = map(json.loads, archive.read_text().splitlines())
    assert (kept["id"], kept["state"], kept["payload"]) == (made, "succeeded", {"a": [1]})
    for what in ("stale", "deleted"):
        said: dict[str, Any] = json.loads((tmp_path / f"job.{what}-{made}.json").read_text())
        assert (said["type"], said["data"]["payload"]) == (f"job.{what}", {"a": [1]})
    told = machine.call("events", "--job", str(made), "--json").lines
    types = [one["type"] for one in told]
    assert types[-4:].count("job.webhook_delivered") == 2
    assert types.index("job.stale") < types.index("job.deleted")
