"""Pages without a view: somebody must sign in, or something could not be done. Pure."""

from __future__ import annotations

from http import HTTPStatus

from musterd.web.pages.html import el, link
from musterd.web.pages.layout import Frame, View, button, hidden


def sign_in(after: str, *, wrong: bool = False) -> View:
    """`after`: where to go then, if it is a place of ours."""
    after = after_sign_in(after)
    said = el("p", "No such token.", class_="notice ill", role="alert") if wrong else None
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
    again = el("p", link(after, "I am signed in already"), class_="dim")
    return View("", "Sign in", (el("h1", "Sign in"), said, form, again))


def refusal(frame: Frame, status: HTTPStatus, words: str) -> View:
    title = status.phrase
    return View(
        "",
        title,
        el(
            "div",
            el("h1", title),
            el("p", words or title),
            el("p", link(frame.at("/"), "To the overview", class_="button")),
            class_="card ask",
        ),
    )


def after_sign_in(place: str) -> str:
    """Where to go: a path of ours, else the first view."""
    is_plain = place.isascii() and place.isprintable() and "\\" not in place
    is_ours = place.startswith("/") and not place.startswith("//")
    return place if is_plain and is_ours else "/"
