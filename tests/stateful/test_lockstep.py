"""Whatever is done to a store in whatever order, SQLite, PostgreSQL and the model say the same."""

import os
import secrets

import hypothesis
import pytest
import trio
from hypothesis import HealthCheck, Phase
from hypothesis.stateful import run_state_machine_as_test

from tests.fix_postgres import FreshDatabase
from tests.stateful.machine import Machine
from tests.stateful.stores import opened_postgres, opened_sqlite
from tests.support.scale import scaled

EXAMPLES, STEPS = 500, 50
PARTS = 8  # each a test of its own, so that several run at once
SEED = "MUSTERD_TEST_SEED"


@pytest.mark.timeout(scaled(900))  # a failure is made small before it is told
@pytest.mark.parametrize("part", range(PARTS))
async def test_both_engines_say_what_the_model_says(
    fresh_database: FreshDatabase, part: int
) -> None:
    seed = int(os.environ.get(SEED, secrets.randbits(32)))
    settings = hypothesis.settings(
        max_examples=-(-scaled(EXAMPLES) // PARTS),
        stateful_step_count=STEPS,
        deadline=None,
        database=None,
        print_blob=True,
        report_multiple_bugs=False,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    async with opened_sqlite() as sqlite, opened_postgres(fresh_database()) as postgres:

        @hypothesis.seed(seed + part)
        class Both(Machine):
            def __init__(self) -> None:
                super().__init__([sqlite, postgres])

        def run() -> None:
            run_state_machine_as_test(Both, settings=settings)

        try:
            await trio.to_thread.run_sync(run)
        except Exception as error:
            error.add_note(f"{SEED}={seed}, part {part}")
            raise
