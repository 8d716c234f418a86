"""The page on the catalog is true: its examples load, its tables are those of the code."""

from pathlib import Path

from musterd.catalog.kinds import delay_seconds
from musterd.config.load import load
from musterd.config.settings import Retry
from tests.support.pages import bare, page, table

PAGE = page("catalog.md")
RETRY = load(None, {}, [], Path("no-such-file.toml")).settings.retry


def test_the_delays_shown_are_those_of_the_code() -> None:
    for backoff, _, shown in table(PAGE, "`backoff`", "delay"):
        policy = Retry(4, bare(backoff), 1, 2, 300, "none")  # type: ignore[arg-type]  # from the page
        delays = [delay_seconds(policy, failures, 1, failures) for failures in (1, 2, 3, 4)]
        assert shown == ", ".join(f"{delay:g}" for delay in delays) + " s"
