"""What a browser does with the live page, as far as HTTP goes: accepts HTML, sends forms, says
where they come from, keeps cookies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import urlencode

import attrs
import trio

from tests.support.http_client import Answer, ask

HTML = {"Accept": "text/html,application/xhtml+xml"}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@attrs.define
class Browser:
    address: str
    cookie: str = ""

    @property
    def own(self) -> Mapping[str, str]:
        return {**HTML, **({"Cookie": self.cookie} if self.cookie else {})}

    async def get(self, path: str, **headers: str) -> Answer:
        return await trio.to_thread.run_sync(
            lambda: ask(self.address, path, {**self.own, **headers})
        )

    async def send(
        self, path: str, fields: Mapping[str, str | Sequence[str]], **headers: str
    ) -> Answer:
        """Sends a form of one of our pages."""
        body = urlencode(fields, doseq=True).encode()
        sent = {**self.own, **FORM, "Origin": self.address, **headers}
        answer = await trio.to_thread.run_sync(
            lambda: ask(self.address, path, sent, method="POST", body=body)
        )
        given = answer.headers.get("set-cookie")
        if given is not None:
            name, _, value = given.partition(";")[0].partition("=")
            self.cookie = f"{name}={value}" if value else ""
        return answer
