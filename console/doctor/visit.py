"""One visit of the doctor's: first what needs no store, beside it the opening of the stores, then
what is to be asked of those that answer.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

import trio

from musterd.config.faults import ConfigError
from musterd.console.doctor import stores, surroundings
from musterd.console.doctor.finding import Finding
from musterd.console.doctor.patient import Patient, Ran
from musterd.console.doctor.rounds import CHECK_SECONDS, examine

CLOSE_SECONDS = 5.0
PROGRAM_BYTES_MAX = 64 * 1024


async def visit(patient: Patient, seconds: float = CHECK_SECONDS) -> list[Finding]:
    """All that is found, the stores' after the rest, each tenant's together."""
    try:
        patients = stores.stores_of(patient)
    except ConfigError:
        patients = []  # the check of secrets tells of it
    first = surroundings.checks(patient)
    try:
        found = await examine([*first, *stores.opening_checks(patients)], seconds)
        found += await examine(stores.open_checks(patients, patient), seconds)
    finally:
        with trio.move_on_after(CLOSE_SECONDS, shield=True):
            await stores.close_all(patients)
    own = [one for one in found if not one.tenant]
    theirs = [one for store in patients for one in found if one.tenant == store.tenant]
    return [*own, *theirs]


async def run_program(command: Sequence[str]) -> Ran:
    """Raises OSError where there is no such program. Its complaints are nobody's."""
    done = await trio.run_process(
        list(command),
        capture_stdout=True,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    return Ran(done.returncode, done.stdout[:PROGRAM_BYTES_MAX].decode("utf-8", "replace"))
