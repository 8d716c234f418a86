"""The page on following names the options, parameters and bounds that there are."""

from musterd.config.settings import Settings
from musterd.console.command import SHARED_OPTIONS
from musterd.console.verbs.events import LIMIT_DEFAULT, events
from musterd.manager.events.feed import PING_SECONDS, POLL_SECONDS
from musterd.manager.events.source import RETRY_MS, STUCK_SECONDS, opening
from musterd.store.event_types import GROUPS, event_type
from musterd.web.api.routes import OPERATIONS
from musterd.web.server.places import REQUESTS_MAX
from tests.support.pages import codes, page, table
from tests.support.stage import settings_with

PAGE = page("following.md")
ROWS = table(PAGE, "option", "what it shows")


def test_every_option_of_the_verb_is_told() -> None:
    own = {option.opts[0] for option in events.params if option not in SHARED_OPTIONS}
    assert {code for options, _ in ROWS for code in codes(options)} == own


def test_every_group_of_types_is_told() -> None:
    (about,) = (about for option, about in ROWS if "--type" in option)
    named = codes(about)
    assert {event_type(name) for name in named} - {"job.failed"} == set(GROUPS)


def test_every_parameter_of_the_stream_is_told() -> None:
    (stream,) = (one for one in OPERATIONS if one.path == "/events")
    told = {code.strip("?=") for code in codes(PAGE)}
    assert {param.name for param in stream.params} <= told


def test_the_numbers_are_those_of_the_program() -> None:
    settings: Settings = settings_with()
    for words in (
        f"the newest {LIMIT_DEFAULT}",
        f"`ping` comes every {PING_SECONDS:g} seconds",
        f"takes nothing for {STUCK_SECONDS:g} seconds",
        f"at most every {POLL_SECONDS:g} seconds",
        f"`http.max_event_readers` ({settings.http.max_event_readers})",
        f"beside the {REQUESTS_MAX} other requests",
        f"`events.keep_hours` ({settings.events.keep_hours:g})",
        opening().decode(),
    ):
        assert words in PAGE
    assert RETRY_MS == 1_000
