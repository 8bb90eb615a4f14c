"""Where keys and values of a TOML document stand: whatever tomlkit writes is found again."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from typing import Any

import tomlkit
from hypothesis import given
from hypothesis import strategies as st

from envdsl.policy.places import Path, find_places

names = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), max_size=6)
scalars = st.booleans() | st.integers(-(10**6), 10**6) | names | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3))
documents = st.dictionaries(names, values, max_size=5)


def leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, (*path, key))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from leaves(item, (*path, number))
    else:
        yield path, value


def check(text: str) -> None:
    places = find_places(text)
    for path, value in leaves(tomllib.loads(text)):
        start, end = places.values[path]
        assert tomllib.loads(f"x = {text[start:end]}") == {"x": value}, path
        assert places.of_value(path) == (start, end)
        if isinstance(path[-1], str):
            start, end = places.of_key(path)
            assert tomllib.loads(f"{text[start:end]} = 0") == {path[-1]: 0}


@given(documents)
def test_every_value_and_key_is_found_where_it_stands(document: dict[str, Any]) -> None:
    check(tomlkit.dumps(document))


def test_all_spellings_of_toml() -> None:
    check(
        '''\
# a "comment" = [ { that counts nothing
top = 1  # so does this
a.b."c d".'e' = "x # no comment"
dates = [1979-05-27, 1979-05-27T07:32:00Z, 07:32:00] # "
  [ table . "quoted.key" ]
  many = """
"quotes" and \\""" and a ] and a }""""
  literal = \'\'\'C:\\new ''\'\'\'
  list = [ "a" , # why
    [ ], [ 1, 2, ], { x = 1, y.z = [ { } , {q = "}"} ] },
  ]
[[session]]
pattern = "one"
[session.limits]
size = "1 MB"
[[session]]
pattern = "two"
[[session.deep]]
n = 1
[[session.deep]]
n = 2
[session.limits.more]
x = 0x_f
'''.replace("0x_f", "0xf")
    )


def test_a_table_has_the_place_of_its_header_and_what_is_missing_that_of_what_is_around_it() -> None:
    text = '[limits]\nsize = "1 MB"\n\n[[session]]\n[[session]]\n'
    places = find_places(text)
    assert text[slice(*places.of_value(("limits",)))] == "[limits]"
    assert places.of_value(("session", 1)) == (text.rindex("[[session]]"), len(text) - 1)
    assert places.of_value(("session", 1, "pattern")) == places.of_value(("session", 1))
    assert places.of_value(("nothing",)) == (0, 0)
