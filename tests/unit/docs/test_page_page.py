"""The page on the page names its views, and its bounds are those of the code."""

from musterd.store import bulk, searching
from musterd.web.api import jobs as api_jobs
from musterd.web.pages import job, jobs, overview
from musterd.web.pages.layout import ROWS_MAX, VIEWS
from musterd.web.samples import REST_SECONDS, SAMPLE_SECONDS, SAMPLES_MAX
from musterd.web.ui import actions, sessions, views
from musterd.web.ui.live import LOOK_SECONDS, LOOKS_PER_SECOND
from tests.support.pages import page, table

PAGE = page("page.md")


def test_every_view_is_told() -> None:
    told = [(name, place.strip("`")) for name, place, _ in table(PAGE, "view", "where")]
    named = [(title, path) for _, title, path in VIEWS]
    assert [one for one in told if one[0] != "Job"] == named
    assert ("Job", "/ui/jobs/ID") in told


def test_the_bounds_are_those_of_the_code() -> None:
    bounds = {row[0]: row[1] for row in table(PAGE, "what", "how much")}
    assert bounds["jobs in a page of the list"] == str(views.JOBS_SHOWN)
    assert bounds["kinds offered in the filter"].startswith(f"{jobs.KINDS_LISTED};")
    shown = f"{overview.WORKERS_SHOWN} in the overview, {ROWS_MAX} among the nodes"
    assert bounds["workers shown"].startswith(shown)
    assert f"{job.VALUE_CHARACTERS_MAX:,} characters" in bounds["payload, result"]
    steps = f"the latest {job.ATTEMPTS_SHOWN} and {job.STEPS_SHOWN}"
    assert bounds["attempts, steps of the timeline"] == steps
    searched = f"{searching.LOOKED_MAX:,}, or as many as {api_jobs.SEARCH_SECONDS:g} s allow;"
    assert bounds["jobs that a search looks at"].startswith(searched)
    answers = f"{views.STORE_SECONDS:g} s, a list {views.LIST_SECONDS:g} s"
    assert bounds["an answer of the store"] == answers


def test_the_numbers_of_the_text_are_those_of_the_code() -> None:
    text = " ".join(PAGE.split())
    assert f"takes every {SAMPLE_SECONDS:g} s and keeps for ten minutes" in text
    assert SAMPLE_SECONDS * SAMPLES_MAX == 600
    assert REST_SECONDS == 60, "asked once a minute at most"
    assert f"up to {bulk.COUNT_MAX:,} are counted" in text
    assert f"among the newest {views.NEWER_SPAN} jobs, up to {jobs.NEWER_MAX}" in text
    assert f"too many for {actions.ACT_SECONDS:g} s" in text
    assert (round(1 / LOOK_SECONDS), LOOKS_PER_SECOND) == (3, 20)
    assert f"for {sessions.SESSION_SECONDS / 3600:g} hours" in text
    assert f"at most {sessions.SESSIONS_MAX} sessions" in text
