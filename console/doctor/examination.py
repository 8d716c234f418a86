"""Runs every check within its time limit: those that need no store first, then those of stores."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from functools import partial

import attrs
import trio

from musterd.config.faults import ConfigError
from musterd.console.doctor import stores, surroundings
from musterd.console.doctor.finding import Check, Finding, ProgramResult, Setup, fail
from musterd.console.opening import each_in_order
from musterd.store.errors import StoreError
from musterd.store.words import one_line

CHECK_SECONDS = 10.0
AT_ONCE = 4  # a setup is not to be made ill by its doctor


async def examine(checks: Sequence[Check], seconds: float = CHECK_SECONDS) -> list[Finding]:
    """The findings of the checks, in their order."""
    looks = [partial(_run_check, check, seconds) for check in checks]
    return [one for findings in await each_in_order(looks, AT_ONCE) for one in findings]


async def _run_check(check: Check, seconds: float) -> Sequence[Finding]:
    try:
        with trio.fail_after(seconds):
            findings = list(await check.look())
    except trio.TooSlowError:
        said, advice = f"no answer within {seconds:g} s", "find out what delays it, then run doctor"
        findings = [fail(check.name, said, "an answer in time", f"{advice} again")]
    except ConfigError as error:
        said = "; ".join(str(error).splitlines())
        advice = "fix it: the daemon refuses to start"
        found = fail(check.name, said, "a secret that can be read", advice)
        findings = [attrs.evolve(found, stop="misconfigured")]
    except (StoreError, OSError) as error:
        findings = [_failed(check, str(error))]
    except Exception as error:  # noqa: BLE001 - it is reported, by the name of the check
        findings = [_failed(check, f"{type(error).__name__}: {error}")]
    return [attrs.evolve(one, tenant=check.tenant, group=check.group) for one in findings]


def _failed(check: Check, said: str) -> Finding:
    found = f"the check itself failed: {one_line(said)}"
    return fail(check.name, found, "an answer", "the message says what went wrong")


CLOSE_SECONDS = 5.0
PROGRAM_BYTES_MAX = 64 * 1024


async def examine_all(setup: Setup, seconds: float = CHECK_SECONDS) -> list[Finding]:
    """All that is found, the stores' after the rest, each tenant's together."""
    try:
        found_stores = stores.stores_of(setup)
    except ConfigError:
        found_stores = []  # reported by the check of secrets
    first = surroundings.checks(setup)
    try:
        found = await examine([*first, *stores.opening_checks(found_stores)], seconds)
        found += await examine(stores.open_checks(found_stores, setup), seconds)
    finally:
        with trio.move_on_after(CLOSE_SECONDS, shield=True):
            for one in found_stores:
                await one.engine.close()
    own = [one for one in found if not one.tenant]
    theirs = [one for store in found_stores for one in found if one.tenant == store.tenant]
    return [*own, *theirs]


async def run_program(command: Sequence[str]) -> ProgramResult:
    """Raises OSError if there is no such program; ignores its stderr."""
    done = await trio.run_process(
        list(command), capture_stdout=True, stderr=subprocess.DEVNULL, check=False
    )
    out = done.stdout[:PROGRAM_BYTES_MAX].decode("utf-8", "replace")
    return ProgramResult(done.returncode, out)
