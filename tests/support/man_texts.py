"""What the manual pages say beside what the program says of itself."""

from __future__ import annotations

from collections.abc import Sequence

from musterd.console.output import Exit

Rows = Sequence[tuple[str, str]]

# The day of each version.
RELEASED = {"0.1.0": "2026-11-18"}

DESCRIPTION = """
musterd keeps a durable queue of jobs and runs them. A job is claimed by a worker under a lease,
which is renewed while it runs; a job whose worker, machine or database dies is taken up again.
The number of workers follows the number of jobs, between two bounds.

The queue lives in PostgreSQL, or in a file of its own on this machine. Several daemons may
serve one queue in PostgreSQL. `musterd run` is the daemon; every other command speaks to the
store, and works while no daemon runs, except `status`, `top`, `scaling` and `drain`, which also ask
the daemon of this machine.
"""

STATE = (
    "The queue, where no PostgreSQL is configured. Without STATE_DIRECTORY it is in"
    " `$XDG_STATE_HOME/musterd`, else in `~/.local/state/musterd`."
)
DRAIN = (
    "Drain: nothing more is claimed, and running jobs may finish within"
    " `shutdown.grace_period_seconds`. A second one dismisses them at once."
)
FILES: Rows = (
    ("/etc/musterd/musterd.toml", "The settings, if it is there: see `musterd.toml` (5)."),
    ("$STATE_DIRECTORY/musterd.db", STATE),
    ("musterd.db-wal, musterd.db-shm", "Beside it; the last changes may stand there only."),
    ("musterd.db.lock, musterd.db.wake", "Beside it; the daemon's lock, and what wakes it."),
)

ENVIRONMENT: Rows = (
    ("MUSTERD_SECTION__KEY", "A setting, as MUSTERD_WORKERS__MAX_COUNT."),
    ("STATE_DIRECTORY, XDG_STATE_HOME, HOME", "Where the embedded store keeps its file."),
    (
        "CREDENTIALS_DIRECTORY",
        "Where systemd put the files that `url_file` and `token_file` may name.",
    ),
    ("PGHOST, PGUSER, ...", "Read by libpq once a PostgreSQL URL is chosen."),
    ("NO_COLOR", "No colour. The same with TERM=dumb."),
)

EXITS = {
    Exit.DONE: "Done; a daemon that drained, or was told twice.",
    Exit.UNSUCCESSFUL: (
        "The job waited for did not succeed; `status` is not healthy; `bench` was cut short."
    ),
    Exit.USAGE: "Wrong use, or a payload that is refused.",
    Exit.UNKNOWN: "No such job, no such kind, no such tenant.",
    Exit.WRONG_STATE: "The state of the job does not allow it.",
    Exit.UNAVAILABLE: "The store, or the daemon asked, cannot be reached: trying later may help.",
    Exit.CONFIGURATION: "Configuration, catalog or schema: trying later does not help.",
}

SIGNALS: Rows = (
    ("TERM, INT", DRAIN),
    ("HUP", "Read configuration and catalog anew, and apply them whole or not at all."),
)

EXAMPLES: Rows = (
    ("musterd enqueue report --wait", "Put one job into the queue and wait for its end."),
    ("musterd jobs --state failed --limit 10", "The ten newest jobs that have failed."),
    ("musterd why 7", "What stops job 7, and what to do about it."),
    (
        "musterd cancel --where kind=report --older 1h",
        "End all jobs of a kind that are an hour old.",
    ),
    ("musterd top --filter state=failed", "Watch what fails."),
    ("musterd run --set workers.max_count=16", "Run the daemon with up to 16 workers."),
)

TOML_DESCRIPTION = """
Settings of `musterd` (1), in TOML. Layers, the later ones win: what is shipped with the
program, this file or the one that `--config` names, variables `MUSTERD_SECTION__KEY`, and
`--set`.

Units stand in the names of keys: those in `_ms` are whole numbers, those in `_seconds` may have
fractions. `musterd config check` names every fault at once; `musterd config show --origin` says
where each value comes from. A daemon reads the file anew on HUP.
"""

TOML_EXAMPLE = """
[workers]
default_count = 4
max_count = 16

[store]
url_file = "/etc/musterd/store-url"
"""
