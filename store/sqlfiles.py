"""SQL lives in files, one statement each; this loads them by name."""

from __future__ import annotations

from importlib.resources import files


def load_statements(package: str) -> dict[str, str]:
    """All statements of an engine (`musterd.store.postgres` or `.sqlite`): file name without `.sql`
    -> text.
    """
    folder = files(package) / "sql"
    return {
        entry.name.removesuffix(".sql"): entry.read_text(encoding="utf-8")
        for entry in folder.iterdir()
        if entry.name.endswith(".sql")
    }
