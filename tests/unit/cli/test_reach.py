"""What the banner of `musterd run` says other verbs need to reach the same store."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from musterd.console.verbs.run import Reach, reach_of


@pytest.mark.parametrize(
    ("file", "sets", "environ", "reach"),
    [
        (None, [], {"PATH": "/bin"}, Reach("", "", here=False)),
        (Path("/etc/a b.toml"), [], {}, Reach(" --config '/etc/a b.toml'", "", here=False)),
        (Path("a.toml"), [], {}, Reach(" --config a.toml", "", here=True)),
        (
            None,
            ["workers.max_count=3", "store.url=sqlite:///x.db", 'catalog.paths=["k.toml"]'],
            {},
            Reach(
                " --set store.url=sqlite:///x.db --set 'catalog.paths=[\"k.toml\"]'", "", here=True
            ),
        ),
        (
            None,
            [],
            {
                "STATE_DIRECTORY": "/tmp/my state",
                "MUSTERD_STORE__SCHEMA": "s",
                "MUSTERD_LOG__LEVEL": "x",
            },
            Reach("", "MUSTERD_STORE__SCHEMA=s 'STATE_DIRECTORY=/tmp/my state'", here=False),
        ),
        (
            None,
            ["http.token=s3cret", "store.url=postgresql://u:s3cret@h/db"],
            {"MUSTERD_STORE__URL": "postgresql://u:s3cret@h/db"},
            Reach(" --set http.token=… --set store.url=…", "MUSTERD_STORE__URL=…", here=False),
        ),
        (
            None,
            ["store.url=sqlite:////srv/x.db", "http.listen=unix:/run/m"],
            {},
            Reach(
                " --set store.url=sqlite:////srv/x.db --set http.listen=unix:/run/m",
                "",
                here=False,
            ),
        ),
    ],
)  # fmt: skip
def test_what_leads_to_the_store_is_named_and_no_secret(
    file: Path | None, sets: Sequence[str], environ: Mapping[str, str], reach: Reach
) -> None:
    assert reach_of(file, sets, environ) == reach
