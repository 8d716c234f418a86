"""Each key's line is the one a reader would point at."""

from collections.abc import Iterable, Iterator
from typing import cast

import tomli
from hypothesis import given, settings
from hypothesis import strategies as st

from musterd.config.document import KeyPath, key_lines
from musterd.config.toml_text import key_text, toml_text

SAMPLE = """\
top = 1  # 1
"quoted key" = "[not.a.table]"

[ first . "sec.ond" ]  # 4
'lit"eral' = '''
[fake]
x = 1
'''
after.dotted = 3
escaped = "a \\" # [b] = "
ends_in_quotes = \"\"\"a\"\"\"\"\"
date = 1979-05-27 07:32:00

[[many]]  # 14
name = "a"
[many.sub]
deep = 1
[[many]]
inline = { x = 1, "y.z" = [
    10,  # ] }
    { w = 11, v = [] },
  ], }
[[many.inner]]
one = 1
[[many.inner]]
[first.later]
"\\u0041" = ""
"""


def test_every_form_of_key_has_its_line() -> None:
    lines = key_lines(SAMPLE)
    expected: dict[KeyPath, int] = {
        ("top",): 1,
        ("quoted key",): 2,
        ("first",): 4,
        ("first", "sec.ond"): 4,
        ("first", "sec.ond", 'lit"eral'): 5,
        ("first", "sec.ond", "after"): 9,
        ("first", "sec.ond", "after", "dotted"): 9,
        ("first", "sec.ond", "escaped"): 10,
        ("first", "sec.ond", "ends_in_quotes"): 11,
        ("first", "sec.ond", "date"): 12,
        ("many",): 14,
        ("many", 0): 14,
        ("many", 0, "name"): 15,
        ("many", 0, "sub"): 16,
        ("many", 0, "sub", "deep"): 17,
        ("many", 1): 18,
        ("many", 1, "inline"): 19,
        ("many", 1, "inline", "x"): 19,
        ("many", 1, "inline", "y.z"): 19,
        ("many", 1, "inline", "y.z", 0): 20,
        ("many", 1, "inline", "y.z", 1): 21,
        ("many", 1, "inline", "y.z", 1, "w"): 21,
        ("many", 1, "inline", "y.z", 1, "v"): 21,
        ("many", 1, "inner"): 23,
        ("many", 1, "inner", 0): 23,
        ("many", 1, "inner", 0, "one"): 24,
        ("many", 1, "inner", 1): 25,
        ("first", "later"): 26,
        ("first", "later", "A"): 27,
    }
    assert lines == expected


def test_an_empty_text_has_no_keys() -> None:
    assert key_lines("") == key_lines("\n# x = 1\n\n") == {}


@given(st.data())
def test_lines_are_those_where_the_keys_were_written(data: st.DataObject) -> None:
    text, expected = "", dict[KeyPath, int]()
    names = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
    values = st.sampled_from(VALUES)
    noise = st.sampled_from(["", "\n", "# [x]\n", " \t# y = '''\n\n"])
    for table in data.draw(st.lists(names, unique=True, max_size=4)):
        text += data.draw(noise)
        expected[(table,)] = text.count("\n") + 1
        text += f"[{key_text([table])}]\n"
        for key in data.draw(st.lists(names, unique=True, max_size=4)):
            text += data.draw(noise)
            expected[(table, key)] = text.count("\n") + 1
            text += f" {key_text([key])} = {data.draw(values)}\n"
    lines = key_lines(text)
    assert {path: line for path, line in lines.items() if len(path) <= 2} == expected


VALUES = (
    "1",
    "-0.5e3",
    "1979-05-27 07:32:00Z",
    '"a \\" ] } = # b"',
    "'[x]'",
    '""',
    '"""\n[x]\ny = 1\n"""',
    '""""quoted" \\""" """""',
    "'''\n'''''",
    "[\n 1, # ]\n [ ], ]",
    "{ a = { b = [1, { c = 2 }] }, d.e = 'f' }",
)

SCALARS = st.one_of(st.booleans(), st.integers(), st.floats(), st.text())
TREES = st.recursive(
    SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20
)


@settings(max_examples=50)
@given(st.dictionaries(st.text(), TREES))
def test_every_key_of_a_text_has_a_line(tree: dict[str, object]) -> None:
    text = "".join(f"{key_text([key])} = {toml_text(value)}\n" for key, value in tree.items())
    assert set(key_lines(text)) == set(paths(tomli.loads(text)))


def paths(tree: object, above: KeyPath = ()) -> Iterator[KeyPath]:
    """Gives the path of everything below `tree`."""
    for key, value in children(tree):
        yield (*above, key)
        yield from paths(value, (*above, key))


def children(tree: object) -> Iterable[tuple[str | int, object]]:
    if isinstance(tree, dict):
        return cast(dict[str | int, object], tree).items()
    return enumerate(cast(list[object], tree)) if isinstance(tree, list) else ()
