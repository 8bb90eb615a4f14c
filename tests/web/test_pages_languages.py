"""What the pages say: in both languages, in words of the catalogs alone, and nothing that is never said."""

from __future__ import annotations

import re
import string
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path

import pytest
from jinja2 import nodes

from envdsl.policy.access import Role
from envdsl.policy.classify import CODES as REASONS
from envdsl.policy.proposal import Choice
from envdsl.policy.rules import Treatment
from envdsl.sandbox.doctor import Status as Health
from envdsl.web.pages import catalog, errors, preferences, rendering
from envdsl.web.pages.languages import CODES, language, negotiate
from envdsl.web.pages.request_lines import STATES

TEMPLATES = sorted(Path(str(rendering.__file__)).parent.parent.joinpath("templates").glob("*.html"))
PAGES = sorted(Path(str(rendering.__file__)).parent.glob("*.py"))
ENGLISH, CHINESE = language("en"), language("zh")

# The keys that templates put together, by the part that stands there: all that can follow it.
COMPOSED = {
    "menu.": [key for key, _, _ in rendering.MENU],
    "role.": [role.value for role in Role],
    "theme.": list(preferences.THEMES),
    "kind.": ["base", "x", "iso"],
    "status.": [*STATES, *(status.value for status in Health)],
    "next.": list(STATES),
    "requests.": ["open", "all"],
    "tokens.": ["expired", "revoked"],
    "choice.": [choice.value for choice in Choice],
    "treatment.": [treatment.value for treatment in Treatment],
    "change.": ["added", "removed", "changed"],
    "error.": [*set(errors._TITLES.values()), "failed"],
    "limit.": catalog.LIMITS,
    "reason.": list(REASONS),
    "card.plan-": ["x", "iso"],
}
# Those of which the core may have others: a code without words is shown as it is.
OPEN = ("action.", "cause.", "done.", "choice.", "reason.")


def constant_keys(path: Path) -> Iterator[str]:
    """Every constant that a template calls a message by; ``name ~ x`` gives ``name*``."""
    tree = rendering.environment().parse(path.read_text())
    for call in tree.find_all(nodes.Call):
        name = call.node.name if isinstance(call.node, nodes.Name) else getattr(call.node, "attr", "")
        for argument in call.args:
            if name == "columns":
                yield from (item.as_const() for item in argument.find_all(nodes.Const))
            elif name in ("t", "says", "word"):
                yield from _of(argument, name)
    for pair in tree.find_all(nodes.Const):
        if isinstance(pair.value, str) and pair.value in ENGLISH.messages:
            yield pair.value


def _of(argument: nodes.Expr, name: str) -> Iterator[str]:
    if isinstance(argument, nodes.Const) and isinstance(argument.value, str):
        yield f"{argument.value}*" if name == "word" else argument.value
    elif isinstance(argument, nodes.Concat) and isinstance(argument.nodes[0], nodes.Const):
        yield f"{argument.nodes[0].value}*"


def used() -> set[str]:
    found: set[str] = set()
    for path in TEMPLATES:
        for key in constant_keys(path):
            prefix = key.removesuffix("*")
            if key == prefix:
                found.add(key)
            elif prefix in COMPOSED:
                found |= {f"{prefix}{rest}" for rest in COMPOSED[prefix]}
            else:
                assert prefix in OPEN, f"{path.name}: add {prefix!r} to COMPOSED"
    return found


def test_both_languages_have_the_same_messages() -> None:
    assert sorted(ENGLISH.messages) == sorted(CHINESE.messages)


def test_a_message_has_the_same_places_to_fill_in_in_both_languages() -> None:
    def places(code: str, key: str) -> set[str]:
        message = language(code).messages[key]
        texts = [message] if isinstance(message, str) else list(message.values())
        return {name for text in texts for _, name, _, _ in string.Formatter().parse(text) if name}

    assert {key for key in ENGLISH.messages if places("en", key) != places("zh", key)} == set()


def test_every_message_that_a_template_uses_is_there() -> None:
    assert used() - ENGLISH.messages.keys() == set()


def test_every_message_is_used() -> None:
    sources = "".join(path.read_text() for path in PAGES)
    unused = {key for key in ENGLISH.messages.keys() - used() if not key.startswith(OPEN) and f'"{key}"' not in sources}
    assert unused == set()


def test_what_is_said_after_a_redirect_is_what_pages_redirect_with() -> None:
    sources = "".join(path.read_text() for path in PAGES)
    said = {key.removeprefix("done.") for key in ENGLISH.messages if key.startswith("done.")}
    assert said == {word for word in said if f'"{word}"' in sources}
    assert set(re.findall(r'done="([a-z-]+)"', sources)) <= said


class Prose(HTMLParser):
    """The words of a page: texts between tags, and of attributes that are read aloud or shown."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_data(self, data: str) -> None:
        self.found.append(re.sub(r'[\w-]+="[^"]*"', "", data))  # macros that make attributes

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        spoken = ("title", "alt", "placeholder", "aria-label", "label", "aria-description")
        self.found += [value for name, value in attrs if name in spoken and value]


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_no_template_holds_prose(path: Path) -> None:
    """Issue 4.8: words stand in the catalogs; a template has the product's name at most."""
    text = re.sub(r"\{#.*?#\}|\{%.*?%\}|\{\{.*?\}\}", "", path.read_text(), flags=re.S)
    prose = Prose()
    prose.feed(text)
    words = re.findall(r"[A-Za-z\u4e00-\u9fff]{2,}", " ".join(prose.found))
    assert set(words) <= {"envdsl", "sha"}


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_no_template_holds_what_the_security_policy_forbids(path: Path) -> None:
    text = path.read_text()
    assert not re.search(r"\sstyle=|\son[a-z]+=|javascript:|<style|<script(?![^>]*\ssrc=)|hx-on|\|\s*safe\b", text)


@pytest.mark.parametrize(
    ("header", "code"),
    [
        ("zh-CN,zh;q=0.9,en;q=0.8", "zh"),
        ("zh-Hant-TW", "zh"),
        ("en-GB,en;q=0.9,zh;q=0.8", "en"),
        ("de,zh;q=0.3", "zh"),
        ("fr", "en"),
        ("", "en"),
        ("zh;q=0", "en"),
        ("zh;q=nonsense, en", "en"),
    ],
)
def test_the_browser_chooses_the_language(header: str, code: str) -> None:
    assert negotiate(header) == code


def test_an_unknown_language_is_the_default_one() -> None:
    assert language("xx") is ENGLISH
    assert set(CODES) == {"en", "zh"}


def test_numbers_sizes_and_plurals_are_as_the_language_has_them() -> None:
    assert ENGLISH.text("layers.caption", count=1) == "1 layer"
    assert ENGLISH.text("layers.caption", count=1200).startswith("1,200 layers")
    assert CHINESE.text("layers.caption", count=1).startswith("共 1 个层")
    assert [ENGLISH.size(size) for size in (0, 1023, 1024, 1536, 12 << 20, (1 << 20) - 1, 3 << 40)] == [
        "0 B", "1,023 B", "1.0 KiB", "1.5 KiB", "12.0 MiB", "1.0 MiB", "3,072.0 GiB",
    ]  # fmt: skip


def test_times_are_as_the_language_has_them() -> None:
    now = datetime(2026, 11, 30, 21, 43, tzinfo=UTC)
    assert ENGLISH.moment(now) == "30 Nov 2026, 21:43:00 UTC"
    assert CHINESE.moment(now) == "2026年11月30日 21:43:00 UTC"
    assert ENGLISH.ago(now - timedelta(minutes=3), now) == "3 minutes ago"
    assert ENGLISH.ago(now + timedelta(days=3), now) == "in 3 days"
    assert CHINESE.ago(now - timedelta(minutes=3), now) == "3分钟前"


def test_a_digest_is_shown_by_its_beginning() -> None:
    assert rendering.short("x-0123456789abcdefghij", 6) == "x-012345"
    assert rendering.short("0123456789abcdef") == "0123456789ab"
