"""A campaign's whole stage: the ground, the daemons on it, the clients, and who writes all down."""

from __future__ import annotations

import contextlib
import json
import secrets
from collections import Counter
from collections.abc import Generator
from pathlib import Path

import attrs

from tests.faults.fleet import Fleet, Seat, options_of
from tests.faults.ground import Ground
from tests.faults.recording import Recorder
from tests.faults.sizes import Sizes
from tests.faults.watching import Watch
from tests.faults.workload import Workload
from tests.support.command import Home
from tests.support.hooked import Got, Hooked, Say, hooked

USER = Path(__file__).with_name("user")
ROOT = Path(__file__).parents[2]
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
STATEMENT_SECONDS = 3


@attrs.define(eq=False)
class Notebook:
    """Where everything is written: `harness` by us, `witness` by handlers."""

    folder: Path
    recorder: Recorder
    tally: Counter[str] = attrs.Factory(Counter[str])

    @property
    def harness(self) -> Path:
        return self.folder / "harness.jsonl"

    @property
    def witness(self) -> Path:
        return self.folder / "witness.jsonl"


@attrs.define(eq=False)
class Scene:
    sizes: Sizes
    notebook: Notebook
    ground: Ground
    fleet: Fleet
    watch: Watch
    workload: Workload
    home: Home
    options: tuple[str, ...]
    tag: str
    spared: frozenset[str] = frozenset()  # nodes that are neither killed nor frozen

    @property
    def recorder(self) -> Recorder:
        return self.notebook.recorder


@attrs.define(eq=False)
class Told(Hooked):
    """Writes down who was told what."""

    recorder: Recorder = attrs.field(kw_only=True)

    def take(self, got: Got) -> Say:
        answer, said = Say(), got.json
        self.recorder.note(
            "delivery",
            message=got.id,
            job=said["data"]["id"],
            type=said["type"],
            status=answer.status,
        )
        return answer


@contextlib.contextmanager
def opened(folder: Path, seed: int, sizes: Sizes, ground: Ground) -> Generator[Scene]:
    """Daemons are ready, and clients ask. All that was started has ended after the block."""
    with contextlib.ExitStack() as stack:
        notebook = stack.enter_context(notes_in(folder))
        hook = stack.enter_context(hooked(own=Told([], recorder=notebook.recorder)))
        config = configured(folder, sizes)
        home = Home(folder / "state", ground.url)
        migrated = home.call("db", "migrate", *options_of(config, {}))
        assert migrated.code == 0, migrated.err
        tag = secrets.token_hex(8)
        watch = stack.enter_context(Watch(notebook.witness))
        fleet = Fleet(notebook.recorder, seats_of(folder, config, ground), notebook.witness, tag)
        stack.enter_context(fleet)
        fleet.wait_until_ready()
        workload = Workload(notebook.recorder, ground.clients_url, seed, sizes.mix, hook.url)
        stack.enter_context(workload)
        yield Scene(
            sizes, notebook, ground, fleet, watch, workload, home, options_of(config, {}), tag
        )


@contextlib.contextmanager
def notes_in(folder: Path) -> Generator[Notebook]:
    recorder = Recorder(folder / "harness.jsonl")
    try:
        yield Notebook(folder, recorder)
    finally:
        recorder.close()


def seats_of(folder: Path, config: Path, ground: Ground) -> list[Seat]:
    return [
        Seat(
            Home(folder / f"home{number}", way.url),
            options_of(config, {"store.listen_url": way.listen_url}),
        )
        for number, way in enumerate(ground.ways, start=1)
    ]


def configured(folder: Path, sizes: Sizes) -> Path:
    """Short leases and short pauses: what is lost comes back soon."""
    tables: dict[str, dict[str, object]] = {
        "workers": {
            "default_count": 2,
            "max_count": sizes.workers_max,
            "lease_timeout_seconds": sizes.lease_seconds,
            "scale_interval_ms": 500,
        },
        "leases": {"margin_seconds": sizes.margin_seconds},
        "duties": {"lease_seconds": 2, "heartbeat_seconds": 0.5},
        "store": {
            "statement_timeout_seconds": STATEMENT_SECONDS,
            "connect_timeout_seconds": 2,
            "lock_timeout_seconds": 1,
            "idle_transaction_timeout_seconds": 3,
            "reconnect_max_seconds": 1,
            "pool_size": 2,
        },
        "shutdown": {"grace_period_seconds": 20},
        "webhooks": {
            "secret": SECRET,
            "allow_private": True,
            "allow_http": True,
            "retry_base_seconds": 0.5,
            "retry_max_seconds": 2,
        },
        "http": {"listen": "127.0.0.1:0"},
        "retention": {"stale_after_hours": 0, "delete_after_hours": sizes.keep_seconds / 3600},
        "catalog": {"paths": [str(USER / "kinds.toml")], "python_path": [str(ROOT)]},
        "schedules.second": {"kind": "tick", "every_seconds": 1, "payload.ms": 30},
    }
    path = folder / "musterd.toml"
    path.write_text("".join(table(name, keys) for name, keys in tables.items()))
    return path


def table(name: str, keys: dict[str, object]) -> str:
    """What is written as JSON here is TOML as well."""
    lines = [f"{key} = {json.dumps(value)}" for key, value in keys.items()]
    return "\n".join([f"[{name}]", *lines, ""])
