"""The option `webhook` over HTTP: taken, refused, shown."""

import pytest

from tests.support.web_scene import serving
from tests.support.webhook_urls import REFUSED

URL = "https://example.com/hook"


async def test_it_is_taken_and_shown() -> None:
    async with serving() as web:
        made = await web.post("/jobs", {"kind": "report", "webhook": URL})
        plain = await web.post("/jobs", {"kind": "report", "webhook": None})
    assert (made.status, plain.status) == (201, 201)
    assert made.json["webhook"] == {"url": URL, "sent_at": None, "attempts": 0}
    assert plain.json["webhook"] is None


async def test_what_is_no_url_is_refused_in_the_same_words() -> None:
    async with serving() as web:
        for url, wanted in REFUSED:
            refused = await web.post("/jobs", {"kind": "report", "webhook": url})
            assert refused.status == 422
            assert refused.json["detail"].startswith(f"webhook: wanted {wanted}")


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://example.com/", "allow_http = true"),
        ("https://10.1.2.3/", "allow_private = true allows 10.1.2.3"),
        ("https://169.254.169.254/", "nothing is ever sent to"),
    ],
)
async def test_what_this_node_would_not_send_to_is_refused(url: str, said: str) -> None:
    async with serving() as web:
        refused = await web.post("/jobs", {"kind": "report", "webhook": url})
    assert refused.status == 422
    assert said in refused.json["detail"]
