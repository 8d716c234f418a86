"""A view that is one table of what the store has given. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Generic, TypeVar

from attrs import frozen

from musterd.web.pages import layout as ui
from musterd.web.pages.layout import Frame, Html, View, el
from musterd.web.pages.overview import NO_ANSWER

T = TypeVar("T")


@frozen
class Listing(Generic[T]):
    """What is given is at most `most` rows; None = the store does not answer."""

    name: str  # of the view
    caption: str
    columns: Callable[[Frame], ui.Columns[T]]
    most: int
    what: str  # one row
    empty: str

    def view(self, frame: Frame, given: Sequence[T] | None) -> View:
        return ui.live_view(frame, self.name, self.parts_of(frame, given))

    def parts_of(self, frame: Frame, given: Sequence[T] | None) -> Mapping[str, Html]:
        return {self.name: el("div", self._table(frame, given), class_="card")}

    def _table(self, frame: Frame, given: Sequence[T] | None) -> Html:
        if given is None:
            return ui.notice(NO_ANSWER, "ill")
        return ui.table(
            self.caption, given, self.columns(frame),
            most=self.most, what=self.what, empty=self.empty,
        )  # fmt: skip
