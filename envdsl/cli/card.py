"""The card on which a person decides, as plain text for a terminal.

It says what the Markdown says (:mod:`envdsl.app.control.card_markdown`), as it is read instead of as it is rendered.
What agents, indexes and wheels say is shown in one line each, and without what moves a cursor or turns text around.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from envdsl.app.control.card_markdown import TITLES, alike, because, hides, one_line, some_names
from envdsl.cli import output
from envdsl.policy.quantities import spell_size

if TYPE_CHECKING:
    from envdsl.app.control.card import Card, Offer
    from envdsl.policy.proposal import ProposedWheel, Vulnerability

_WIDTH = 100  # columns
_LICENCE = 30  # of them for a licence


def plain(text: str) -> str:
    """``text`` in one line, with what a terminal would obey, or hide, spelled out."""
    return "".join(f"\\u{{{ord(character):x}}}" if hides(character) else character for character in one_line(text))


def render(card: Card) -> str:
    """The card as lines of text, ending with a newline."""
    return "\n".join(_lines(card)) + "\n"


def _lines(card: Card) -> Iterator[str]:
    record = card.record
    asked = [*record.requirements, *(str(upload.get("filename", "")) for upload in record.uploads)]
    yield f"Request {plain(record.id)}: {', '.join(map(plain, asked)) or 'nothing'}"
    yield ""
    yield from _facts(_of_request(card))
    if card.classification is None:
        yield ""
        yield "It is being resolved; what it would bring is not known yet."
        return
    if card.classification.reasons:
        yield ""
        yield because(card.classification)
        for shown, rest in alike(card.classification.reasons):
            for reason in shown:
                yield from _item(plain(reason.message) + (f" ({plain(reason.hint)})" if reason.hint else ""))
            if rest:
                names = ", ".join(plain(reason.package or "") for reason in rest)
                yield from _item(f"and so for {len(rest)} more: {names}")
    for offer in card.offers:
        yield ""
        yield from _offer(card, offer)


def _of_request(card: Card) -> Iterator[tuple[str, str]]:
    record = card.record
    yield "session", plain(record.session) + (f", of {plain(card.owner)}" if card.owner is not None else ", gone")
    yield "asked by", f"{plain(record.requester)}, {record.created:%Y-%m-%d %H:%M} UTC"
    if record.reason:
        yield "because", plain(record.reason)
    for upload in record.uploads:
        yield "uploaded", ", sha256 ".join(plain(str(upload.get(key, ""))) for key in ("filename", "sha256"))
    yield "status", "needs a person" if card.choices else record.status.value
    if record.expires and card.choices:
        yield "until", f"{record.expires:%Y-%m-%d %H:%M} UTC; then it expires"
    if record.decision is not None:
        decision = record.decision
        comment = f": {plain(decision.comment)}" if decision.comment else ""
        yield "decided", f"{plain(decision.choice)}, by {plain(decision.by)}{comment}"
    if record.problem is not None:
        yield "problem", plain(str(record.problem.get("message", "")))


def _offer(card: Card, offer: Offer) -> Iterator[str]:
    yield TITLES[offer.choice]
    plan = offer.plan
    if plan is None:
        yield "  Nothing changes; whoever asked hears of it."
        return
    if plan.note:
        yield from _wrapped(plain(plan.note), "  ")
    facts = [
        ("wheels", f"{output.count(len(offer.new), 'wheel')} that the session lacks, {spell_size(offer.size)} together")
    ]
    if offer.difference is not None:
        found = offer.difference
        changes = (("comes", found.added), ("changes", found.changed), ("goes", found.removed))
        facts += [(title, ", ".join(map(plain, items))) for title, items in changes if items]
    yield from _facts([*facts, ("digest", plain(plan.digest))])
    if not offer.new:
        return
    yield ""
    heads = ["package", "version", "size", "age", "licence", "required by"]
    head, *rows = output.table([heads, *(_row(card, wheel) for wheel in offer.new)], right=(2,)).splitlines()
    yield f"  {head}"
    for wheel, row in zip(offer.new, rows, strict=True):
        yield f"  {row}"
        yield f"    sha256 {plain(wheel.sha256)}"
        if wheel.uploaded:
            yield from _wrapped(f"uploaded; import {some_names(wheel.imports, plain)}", "    ")
        for known in wheel.vulnerabilities:
            yield from _wrapped(f"known vulnerability: {_vulnerability(known)}", "    ")


def _row(card: Card, wheel: ProposedWheel) -> list[str]:
    age = card.age(wheel)
    return [
        plain(wheel.name),
        plain(wheel.version),
        spell_size(wheel.size),
        "unknown" if age is None else output.count(age, "day"),
        textwrap.shorten(plain(wheel.licence or "not stated"), _LICENCE, placeholder="…"),  # some are the whole text
        ", ".join(map(plain, wheel.required_by)) or "the request",
    ]


def _vulnerability(known: Vulnerability) -> str:
    severity = f" ({known.severity})" if known.severity else ""
    fixed = f", fixed in {' and '.join(known.fixed)}" if known.fixed else ""
    return plain(" ".join([known.id, *known.aliases]) + severity + fixed)


def _facts(facts: Iterable[tuple[str, str]]) -> Iterator[str]:
    for name, value in facts:
        yield from _wrapped(value, f"  {name:<10}")


def _item(text: str) -> Iterator[str]:
    return _wrapped(text, "  - ")


def _wrapped(text: str, lead: str) -> Iterator[str]:
    """Never within a word: a digest or a name is copied whole."""
    yield from textwrap.wrap(
        text,
        _WIDTH,
        initial_indent=lead,
        subsequent_indent=" " * len(lead),
        break_long_words=False,
        break_on_hyphens=False,
    ) or [lead.rstrip()]
