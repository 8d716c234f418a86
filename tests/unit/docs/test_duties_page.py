"""The page on duties names those that there are, with their pace and batches."""

from musterd.manager.duties.duty import BACKOFF_SECONDS_MAX, DUTIES, FILE
from musterd.manager.duties.leadership import REBALANCE_SECONDS, UNWANTED_SECONDS
from musterd.manager.duties.schedules import LOOK_SECONDS as SCHEDULES_SECONDS
from musterd.manager.duties.schedules import SLOTS_A_ROUND
from musterd.manager.events.node_events import TRIMMED_ROWS
from musterd.manager.metrics.history import LOOK_SECONDS as FOLD_SECONDS
from musterd.manager.metrics.history import LOOK_SECONDS_LISTENING
from musterd.manager.tenancy.tenant_duties import COUNT_SECONDS, RESTING
from musterd.manager.webhooks.postman import LOOK_SECONDS
from musterd.store.duties import FOLDED_ROWS
from tests.support.pages import bare, page, table
from tests.support.stage import settings_with

PAGE = page("duties.md")


def test_each_duty_is_told() -> None:
    rows = table(PAGE, "duty", "what it does")
    assert tuple(bare(row[0]) for row in rows) == tuple(sorted((*DUTIES, FILE)))


def test_the_numbers_are_those_of_the_program() -> None:
    duties = settings_with().duties
    assert BACKOFF_SECONDS_MAX == LOOK_SECONDS_LISTENING == 60
    for words in (
        f"`[duties] lease_seconds` ({duties.lease_seconds:g})",
        f"`heartbeat_seconds` ({duties.heartbeat_seconds:g})",
        f"every {COUNT_SECONDS:g} seconds, and at each scrape",
        f"every {FOLD_SECONDS:g} seconds; every minute when nothing happens | {FOLDED_ROWS:,}",
        f"every {LOOK_SECONDS:g} seconds | `webhooks",
        f"| {TRIMMED_ROWS:,} rows |",
        f"every {SCHEDULES_SECONDS:g} seconds | {SLOTS_A_ROUND} slots |",
        f"leases are {RESTING.lease_seconds:g} seconds",
        f"renewed every {RESTING.heartbeat_seconds:g}",
        f"every {REBALANCE_SECONDS:g} seconds",
        f"it keeps for {UNWANTED_SECONDS:g} seconds",
    ):
        assert words in " ".join(PAGE.split()), words
