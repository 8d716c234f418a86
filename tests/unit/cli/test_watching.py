"""What `musterd run --watch` looks at."""

import os
from pathlib import Path

from musterd.console.watching import look_at


def written(folder: Path, *names: str) -> list[str]:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x = 1\n")
    return sorted(str(folder / name) for name in names)


def test_files_of_modules_and_catalogs_are_looked_at(tmp_path: Path) -> None:
    own = written(tmp_path, "a.py", "shop/tasks.py", "kinds.toml")
    written(tmp_path, "b.txt", ".git/c.py", "shop/__pycache__/d.py", "venv/site-packages/e.py")
    (tmp_path / "loop").symlink_to(tmp_path)
    found = look_at([tmp_path, tmp_path / "shop", tmp_path / "not-there"])
    assert (sorted(found.stamps), found.is_whole) == (own, True)
    assert list(look_at([tmp_path / "b.txt"]).stamps) == [str(tmp_path / "b.txt")], "named itself"


def test_what_was_written_made_or_deleted_has_changed(tmp_path: Path) -> None:
    one, two, _three = written(tmp_path, "1.py", "2.py", "3.py")
    before = look_at([tmp_path])
    assert look_at([tmp_path]).changed_since(before) == []
    os.utime(one, ns=(0, 0))
    Path(two).unlink()
    (new,) = written(tmp_path, "4.toml")
    assert look_at([tmp_path]).changed_since(before) == [one, two, new]


def test_no_more_entries_are_looked_at_than_the_bound(tmp_path: Path) -> None:
    written(tmp_path, *(f"{number}.py" for number in range(20)))
    assert look_at([tmp_path], 20).is_whole
    few = look_at([tmp_path], 19)
    assert (few.is_whole, len(few.stamps) < 20) == (False, True)
