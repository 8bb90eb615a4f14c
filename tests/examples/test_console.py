"""The reader of console blocks must not let a README lie."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.examples import console

README = """\
Text.

```console
$ printf 'one\\ntwo\\nthree\\n'
one
…
three
$ printf 'a \\t b\\n'
…
a b
…
$ echo "$WHO" >&2
some…dy
```

    $ not a console block

```console
$ exit 3
[exit status 3]
$ true
```
"""


def _run(tmp_path: Path, text: str) -> None:
    readme = tmp_path / "README.md"
    readme.write_text(text, encoding="utf-8")
    console.run(readme, environment={"WHO": "somebody"})


def test_a_true_readme_passes(tmp_path: Path) -> None:
    _run(tmp_path, README)
    assert [step.command for step in console.steps(README)][3:] == ["exit 3", "true"]


@pytest.mark.parametrize(
    ("true", "false"),
    [
        ("one\n…", "two\n…"),
        ("…\nthree", "three"),
        ("a b", "a  c"),
        ("a b", "a b b"),
        ("some…dy", "some…thing"),
        ("[exit status 3]", "[exit status 4]"),
        ("[exit status 3]\n", ""),
        ("$ true\n", "$ true\nsomething\n"),
        ("$ true\n", "$ echo something\n"),
    ],
)
def test_an_untrue_readme_fails(tmp_path: Path, true: str, false: str) -> None:
    assert true in README
    with pytest.raises(AssertionError):
        _run(tmp_path, README.replace(true, false))


def test_a_readme_without_commands_fails(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="no console block"):
        _run(tmp_path, "nothing to run\n")
