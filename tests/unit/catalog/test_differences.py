"""What is told of two catalogs that differ."""

from pathlib import Path

from musterd.catalog.differences import kind_changes
from musterd.catalog.kinds import Catalog
from musterd.catalog.load import catalog_of
from musterd.config.changes import Change
from musterd.config.load import load


def catalog(folder: Path, text: str) -> Catalog:
    folder.mkdir()
    (folder / "kinds.toml").write_text(text)
    return catalog_of(load(None, {}, [f'catalog.paths=["{folder}"]'], Path("no.file")).settings, {})


def changed(tmp_path: Path, before: str, after: str) -> dict[str, tuple[object, object]]:
    """What differs about the one kind that is not as it was."""
    found = kind_changes(catalog(tmp_path / "a", before), catalog(tmp_path / "b", after))
    assert (found.added, found.removed) == ((), ())
    (one,) = found.changed
    return {key.key: (key.before, key.after) for key in one.keys}


def test_where_a_kind_stands_says_nothing(tmp_path: Path) -> None:
    one = "[kinds.x]\nduration_ms = 5\n"
    found = kind_changes(catalog(tmp_path / "a", one), catalog(tmp_path / "b", f"\n\n{one}"))
    assert found.names == ()


def test_kinds_that_come_and_go(tmp_path: Path) -> None:
    old = catalog(tmp_path / "a", "[kinds.x]\nduration_ms = 5\n")
    new = catalog(tmp_path / "b", "[kinds.y]\nduration_ms = 5\n")
    found = kind_changes(old, new)
    assert (found.added, found.changed, found.removed) == (("y",), (), ("x",))


def test_each_key_of_a_kind(tmp_path: Path) -> None:
    old = '[kinds.x]\ncommand = ["a"]\n'
    new = '[kinds.x]\ncommand = ["a", "b"]\npriority = 4\nretry = { max_retries = 9 }\n'
    assert changed(tmp_path, old, new) == {
        "command.argv": (["a"], ["a", "b"]),
        "priority": (0, 4),
        "retry.max_retries": (3, 9),
    }


def test_another_behaviour_has_other_keys(tmp_path: Path) -> None:
    found = changed(tmp_path, "[kinds.x]\nduration_ms = 5\n", '[kinds.x]\ncommand = ["a"]\n')
    assert found["deterministic.outcome"] == ("success", None)
    assert found["command.argv"] == (None, ["a"])


def test_each_key_of_a_phase(tmp_path: Path) -> None:
    text = '[[kinds.x.phases]]\nname = "one"\nduration_ms = {}\n'
    assert changed(tmp_path, text.format(5), text.format(6)) == {
        "phases.one.deterministic.duration_ms_min": (5, 6),
        "phases.one.deterministic.duration_ms_max": (5, 6),
    }


def test_secrets_are_masked(tmp_path: Path) -> None:
    text = (
        '[kinds.x.http]\nurl = "https://h/?password={0}"\nheaders = {{ authorization = "{0}" }}\n'
    )
    old, new = (catalog(tmp_path / one, text.format(f"{one}-secret")) for one in ("old", "new"))
    found = kind_changes(old, new)
    assert "secret" not in repr(found)
    assert found.names == ()


def test_it_applies_to_jobs_that_start_from_then_on(tmp_path: Path) -> None:
    text = "[kinds.x]\npriority = {}\nduration_ms = 1\n"
    old, new = catalog(tmp_path / "a", text.format(1)), catalog(tmp_path / "b", text.format(2))
    (one,) = kind_changes(old, new).changed
    assert one.keys == (Change("priority", 1, 2, "next job"),)
