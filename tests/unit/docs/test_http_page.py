"""The page on the HTTP API names every route, with the scope it wants, and no other."""

from musterd.web.api.routes import OPERATIONS
from tests.support.pages import codes, page, table

PAGE = page("http-api.md")


def told() -> dict[tuple[str, str], str]:
    """Scope by method and path; within a cell the method stands once."""
    found: dict[tuple[str, str], str] = {}
    for routes, scope, _ in table(PAGE, "route", "scope"):
        method = ""
        for code in codes(routes):
            *before, path = code.split(" ")
            method = before[0] if before else method
            found[method, path] = scope
    return found


def test_every_route_is_told_with_its_scope() -> None:
    assert told() == {(one.method, one.path): one.scope or "none" for one in OPERATIONS}


def test_every_filter_of_the_list_is_told() -> None:
    (listing,) = (one for one in OPERATIONS if (one.method, one.path) == ("GET", "/jobs"))
    (about,) = (row[2] for row in table(PAGE, "route", "scope") if row[0] == "`GET /jobs`")
    assert {one.name for one in listing.params} == {*codes(about), "tenant"}
