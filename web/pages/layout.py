"""HTML that cannot contain unescaped text: a string is text, and only `Html` is markup. Also the
elements that views share, the frame around them, and pages without a view. Pure.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from http import HTTPStatus
from importlib.resources import files
from typing import TypeAlias, TypeVar
from urllib.parse import urlencode

from attrs import frozen

from musterd.config.tenant_names import DEFAULT_TENANT
from musterd.store.words import MINUTE_SECONDS, count_text, cut, duration_text, one_line, plural

T = TypeVar("T")
VOID = frozenset({"br", "hr", "img", "input", "link", "meta"})
KEPT = "\n\t"  # of what cannot be printed


@frozen
class Html:
    """Markup; only `el` and `join` make it."""

    text: str


Content: TypeAlias = "Html | str | int | Sequence[Content] | None"
Value: TypeAlias = str | int | bool | None
EMPTY = Html("")


def el(tag: str, /, *content: Content, **attributes: Value) -> Html:
    """An element. `class_` is `class`, `a_b` is `a-b`; True stands alone, None and False go."""
    start = f"<{tag}{''.join(_attribute(key, value) for key, value in attributes.items())}>"
    return Html(start if tag in VOID else f"{start}{_written(content)}</{tag}>")


def join(*content: Content) -> Html:
    return Html(_written(content))


def escaped(text: str) -> str:
    """Text for an element or a quoted attribute. Characters that a browser obeys invisibly (control
    characters, changes of direction, surrogates) are spelt out.
    """
    if not text.isprintable():
        text = "".join(c if c.isprintable() or c in KEPT else one_line(c) for c in text)
    return escape(text)


def address(path: str, **query: str | int | Sequence[str] | None) -> str:
    """One of our paths with a query; None and empty values are omitted."""
    pairs: list[tuple[str, str | int]] = []
    for name, value in query.items():
        if isinstance(value, str | int):
            pairs += [(name, value)] if value != "" else []
        elif value:
            pairs += [(name, one) for one in value]
    # Halves of characters come in by JSON; no URL has them.
    text = urlencode(pairs, errors="replace")
    return f"{path}?{text}" if text else path


def link(to: str, *content: Content, **attributes: Value) -> Html:
    return el("a", *content, href=to, **attributes)


def _written(content: Content) -> str:
    if content is None:
        return ""
    if isinstance(content, Html):
        return content.text
    if isinstance(content, str):
        return escaped(content)
    if isinstance(content, int):
        return str(content)
    return "".join(map(_written, content))


def _attribute(name: str, value: Value) -> str:
    if value is None or value is False:
        return ""
    shown = name.rstrip("_").replace("_", "-")
    return f" {shown}" if value is True else f' {shown}="{escaped(str(value))}"'


TENANTS_LISTED = 100  # in the field that chooses one; any other can be typed
ROWS_MAX = 100  # of a table
NAME_WIDTH = 80  # characters of a name that are shown; its title has more
TITLE_WIDTH = 400
NOTHING = "\N{EN DASH}"  # where there is no value
CONFIGURATION = "configuration"  # only for those who may act
VIEWS = (
    ("overview", "Overview", "/"),
    ("jobs", "Jobs", "/ui/jobs"),
    ("nodes", "Nodes", "/ui/nodes"),
    ("scaling", "Scaling", "/ui/scaling"),
    ("kinds", "Kinds", "/ui/kinds"),
    ("schedules", "Schedules", "/ui/schedules"),
    ("failures", "Failures", "/ui/failures"),
    ("webhooks", "Webhooks", "/ui/webhooks"),
    ("events", "Events", "/ui/events"),
    (CONFIGURATION, "Configuration", "/ui/configuration"),
)
PROGRAMS = ("/metrics", "/status", "/openapi.json")  # what programs read


@frozen
class Frame:
    """For whom a view is made, and its surroundings."""

    node: str
    version: str
    tenant: str = DEFAULT_TENANT
    tenants: Sequence[str] = (DEFAULT_TENANT,)
    holder: str = ""  # the token's name, if somebody is signed in
    may_act: bool = True

    def at(self, path: str, **query: str | int | Sequence[str] | None) -> str:
        """A path of this page, for the same tenant."""
        tenant = None if self.tenant == DEFAULT_TENANT else self.tenant
        return address(path, **query, tenant=tenant)

    def hidden_tenant(self) -> Html:
        """For forms."""
        return EMPTY if self.tenant == DEFAULT_TENANT else hidden("tenant", self.tenant)


@frozen
class View:
    """One view: its name, its content, and where its updates come from."""

    name: str  # of VIEWS, or of none of them
    title: str
    content: Content
    live: str | None = None


def document(frame: Frame, view: View) -> str:
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("title", f"{view.title} · musterd {frame.node}"),
        el("link", rel="stylesheet", href=STYLE_URL),
        el("link", rel="icon", href=ICON_URL),
        el("script", src=SCRIPT_URL, defer=True),
    )
    body = el(
        "body",
        el("a", "Skip to the content", href="#main", class_="skip"),
        _header(frame, view),
        el("main", view.content, id="main", tabindex="-1"),
        _footer(frame),
        data_live=view.live,
    )
    return f"<!doctype html>\n{el('html', head, body, lang='en').text}\n"


def regions(parts: Mapping[str, Html], *names: str) -> Html:
    """The parts of a view, or those named, each in an element that the script finds."""
    return join([el("div", parts[name], id=name, data_region=True) for name in names or parts])


def live_view(frame: Frame, name: str, parts: Mapping[str, Html], heading: str = "") -> View:
    """A view of regions that are kept up to date."""
    title = name.capitalize()
    content = (el("h1", heading or title), regions(parts))
    return View(name, title, content, live=frame.at("/ui/live", view=name))


def card(title: str, *content: Content, class_: str = "") -> Html:
    return el("section", el("h2", title), content, class_=f"card {class_}".strip())


Columns: TypeAlias = Mapping["Html | str", Callable[[T], Content]]  # heads, and cells below


def table(
    caption: str, found: Sequence[T], columns: Columns[T], *, most: int = ROWS_MAX,
    what: str = "row", empty: str = "",
) -> Html:  # fmt: skip
    """A row for each of the first `most`, or `empty`. Scrolls by itself on narrow screens."""
    if empty and not found:
        return el("p", empty, class_="dim")
    rows = [el("tr", row_cells(columns, one)) for one in found[:most]]
    more = left_out(most, len(found), what)
    return join(_whole_table(caption, columns, rows), el("p", more, class_="dim") if more else None)


def live_table(
    caption: str, found: Sequence[T], columns: Columns[T], name: Callable[[T], str]
) -> Html:
    """A row for each, kept up to date under its name."""
    rows = [el("tr", row_cells(columns, one), id=name(one), data_region=True) for one in found]
    return _whole_table(caption, columns, rows)


def _whole_table(caption: str, columns: Columns[T], rows: Sequence[Html]) -> Html:
    made = el(
        "table",
        el("caption", caption),
        el("thead", el("tr", [el("th", head, scope="col") for head in columns])),
        el("tbody", rows),
    )
    return el("div", made, class_="scroll", tabindex="0", role="region", aria_label=caption)


def row_cells(columns: Columns[T], one: T) -> Html:
    """On narrow screens each row is a card, and each cell says what it is."""
    labels = [(head if isinstance(head, str) else None, cell) for head, cell in columns.items()]
    return join([el("td", cell(one), data_label=label) for label, cell in labels])


def facts(pairs: Sequence[tuple[str, Content]]) -> Html:
    """Names and values; those without a value are omitted."""
    shown = [el("div", el("dt", name), el("dd", value)) for name, value in pairs if value]
    return el("dl", shown, class_="facts")


def badge(word: str, mood: str = "") -> Html:
    """A state. Its colour adds nothing to the word."""
    return el("span", word, class_=f"badge {mood or word}")


def name_text(text: str) -> Html | str:
    if len(text) <= NAME_WIDTH:
        return text
    return el("span", cut(text, NAME_WIDTH), title=cut(text, TITLE_WIDTH))


def moment(at: datetime | None, now: datetime | None = None) -> Html | None:
    """A time for people and programs; with `now`, the time since then."""
    if at is None:
        return None
    words = f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S}"
    if now is None:
        return time_element(at, words)
    return time_element(at, ago_text((now - at).total_seconds()), title=f"{words} UTC")


def time_element(at: datetime, words: str, title: str | None = None) -> Html:
    stamp = f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
    return el("time", words, datetime=stamp, title=title)


def lasting_text(seconds: float) -> str:
    """A growing duration: it changes once a second at most."""
    if seconds < 1:
        return "< 1 s"
    return f"{seconds:.0f} s" if seconds < MINUTE_SECONDS else duration_text(seconds)


def ago_text(seconds: float) -> str:
    return f"{lasting_text(seconds)} ago"


def hidden(name: str, value: str | int) -> Html:
    return el("input", type="hidden", name=name, value=str(value))


def button(label: str, *, mood: str = "", **attributes: str | bool | None) -> Html:
    return el("button", label, type="submit", class_=mood or None, **attributes)


def notice(text: Content, mood: str = "well") -> Html:
    return el("p", text, class_=f"notice {mood}", role="status")


def left_out(shown: int, total: int, what: str) -> str:
    """How many more there are; empty if all are shown."""
    return f"… and {plural(total - shown, what)} more" if total > shown else ""


def number(count: int | None) -> str:
    return NOTHING if count is None else count_text(count)


def _header(frame: Frame, view: View) -> Html:
    places = [
        link(frame.at(path), title, aria_current="page" if name == view.name else None)
        for name, title, path in VIEWS
        if frame.may_act or name != CONFIGURATION
    ]
    live = el("span", id="live", class_="live", role="status", hidden=True) if view.live else None
    return el(
        "header",
        el("p", link(frame.at("/"), "musterd"), el("span", name_text(frame.node)), class_="brand"),
        el("nav", places, aria_label="Views"),
        el("div", live, _tenant_field(frame, view), _who(frame), class_="side"),
    )


def _tenant_field(frame: Frame, view: View) -> Html | None:
    if len(frame.tenants) == 1:
        return None
    path = next((path for name, _, path in VIEWS if name == view.name), "/")
    listed = [el("option", value=name) for name in frame.tenants[:TENANTS_LISTED]]
    return el(
        "form",
        el("label", "Tenant", for_="tenant"),
        el("input", id="tenant", name="tenant", value=frame.tenant, list="tenants", required=True),
        el("datalist", listed, id="tenants"),
        button("Go"),
        method="get",
        action=path,
        class_="inline",
    )


def _who(frame: Frame) -> Html | None:
    if not frame.holder:
        return None
    may = "" if frame.may_act else " (read-only)"
    return el(
        "form",
        el("span", f"{cut(frame.holder, NAME_WIDTH)}{may}", class_="dim"),
        button("Sign out"),
        method="post",
        action="/ui/sign-out",
        class_="inline",
    )


def _footer(frame: Frame) -> Html:
    links = [link(frame.at(path) if path != "/metrics" else path, path) for path in PROGRAMS]
    return el(
        "footer",
        el("span", f"musterd {frame.version}"),
        el("span", "Times are UTC.", id="zone"),
        el("nav", links, aria_label="For programs"),
    )


def sign_in_view(after: str, *, wrong: bool = False) -> View:
    """`after`: where to go then."""
    after = after_sign_in(after)
    said = el("p", "Unknown token.", class_="notice ill", role="alert") if wrong else None
    form = el(
        "form",
        hidden("next", after),
        el("label", "Token", for_="token"),
        el(
            "input", id="token", name="token", type="password", required=True, autofocus=True,
            autocomplete="current-password", aria_describedby="which",
        ),
        el("p", "One of the tokens of http.token, http.token_file or http.tokens.", id="which",
            class_="dim"),
        button("Sign in", mood="first"),
        method="post",
        action="/ui/sign-in",
        class_="card ask",
    )  # fmt: skip
    # A browser that comes by a link of another site leaves the cookie behind, once.
    again = el("p", link(after, "I am already signed in"), class_="dim")
    return View("", "Sign in", (el("h1", "Sign in"), said, form, again))


def refusal_view(frame: Frame, status: HTTPStatus, words: str) -> View:
    title = status.phrase
    back = el("p", link(frame.at("/"), "To the overview", class_="button"))
    said = el("div", el("h1", title), el("p", words or title), back, class_="card ask")
    return View("", title, said)


def after_sign_in(place: str) -> str:
    """The place if it is one of ours, else the first view."""
    is_plain = place.isascii() and place.isprintable() and "\\" not in place
    is_ours = place.startswith("/") and not place.startswith("//")
    return place if is_plain and is_ours else "/"


HASH_LENGTH = 12
TYPES = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


@frozen
class Asset:
    path: str
    content: bytes
    media_type: str
    hash: str

    @property
    def url(self) -> str:
        return f"{self.path}?v={self.hash}"


def _asset(name: str) -> Asset:
    content = files(__package__ or "").joinpath(name).read_bytes()
    digest = hashlib.sha256(content).hexdigest()[:HASH_LENGTH]
    return Asset(f"/ui/{name}", content, TYPES[name.rpartition(".")[2]], digest)


ASSETS: Mapping[str, Asset] = {
    asset.path: asset for asset in map(_asset, ("style.css", "script.js", "icon.svg"))
}
STYLE_URL = ASSETS["/ui/style.css"].url
SCRIPT_URL = ASSETS["/ui/script.js"].url
ICON_URL = ASSETS["/ui/icon.svg"].url

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self';"
    " form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
