"""The Markdown of a card (CommonMark, with the tables that GitHub, GitLab and most chats know).

Every text that is not ours goes through :func:`escape`: what an agent, an index or a wheel says is shown as it is
written, and is neither a link nor a mention, heading, image or piece of HTML.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from envdsl.policy.proposal import Choice, Classification, Reason, Vulnerability
from envdsl.policy.quantities import spell_size

if TYPE_CHECKING:
    from envdsl.app.control.card import Card, Offer

# What means something anywhere in a line; what would begin a list, heading or rule; what tools make links of.
_SPECIAL = re.compile(r"[\\`*_\[\]{}|~$#!%^]")
_BEGINNING = re.compile(r"^(\d*)((?<!\d)[-+=]|(?<=\d)[.)](?=\s|$))")
_LINK = re.compile(r"(www)\.|:(?=/)", re.IGNORECASE)
_ENTITIES = {"<": "&lt;", ">": "&gt;", "&": "&amp;", "@": "&#64;", '"': "&quot;"}
_LONGEST = 2000  # characters of one text
_MOST_ALIKE = 3  # reasons with one code
_NAMES = 10  # import names of a wheel

TITLES = {
    Choice.APPROVE: "Approve: a layer on top of what the session has",
    Choice.ISOLATE: "Isolate: an environment of its own, in place of what the session has",
    Choice.DENY: "Deny",
}


def one_line(text: str) -> str:
    """``text`` in one line, cut where it is very long."""
    words = " ".join(text.split())
    return f"{words[:_LONGEST]}…" if len(words) > _LONGEST else words


def hides(character: str) -> bool:
    """Whether it shows what is not there: controls, and what turns the direction of text or hides in it."""
    return unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co")


def escape(text: str) -> str:
    """``text`` in one line, as Markdown that shows just that."""
    escaped = "".join(map(_character, one_line(text)))
    escaped = _LINK.sub(lambda match: f"{match[1]}\\." if match[1] else "\\:", escaped)
    return _BEGINNING.sub(r"\1\\\2", escaped)


def _character(character: str) -> str:
    if character in _ENTITIES:
        return _ENTITIES[character]
    if hides(character):
        return f"\\\\u\\{{{ord(character):x}\\}}"
    return f"\\{character}" if _SPECIAL.match(character) else character


def render(card: Card) -> str:
    """The card as Markdown, ending with a newline."""
    return "\n".join(_lines(card)) + "\n"


def _lines(card: Card) -> Iterator[str]:
    record = card.record
    asked = [*record.requirements, *(str(upload.get("filename", "")) for upload in record.uploads)]
    yield f"# Request {escape(record.id)}: {', '.join(map(escape, asked)) or 'nothing'}"
    yield ""
    owner = f", of {escape(card.owner)}" if card.owner is not None else ", which is gone"
    yield f"- **Session:** {escape(record.session)}{owner}"
    yield f"- **Asked by:** {escape(record.requester)}, {record.created:%Y-%m-%d %H:%M} UTC"
    if record.reason:
        yield f"- **Because:** {escape(record.reason)}"
    for upload in record.uploads:
        name, sha256 = (str(upload.get(key, "")) for key in ("filename", "sha256"))
        yield f"- **Uploaded:** {escape(name)}, sha256 {_code(sha256)}"
    yield f"- **Status:** {record.status.value}"
    if record.expires and card.choices:
        yield f"- **Ends undecided:** {record.expires:%Y-%m-%d %H:%M} UTC"
    if record.decision is not None:
        decision = record.decision
        comment = f": {escape(decision.comment)}" if decision.comment else ""
        yield f"- **Decided:** {escape(decision.choice)}, by {escape(decision.by)}{comment}"
    if card.classification is None:
        yield ""
        yield "It is being resolved; what it would bring is not known yet."
        return
    if card.classification.reasons:
        yield ""
        yield f"## {because(card.classification)}"
        yield ""
        yield from _reasons(card.classification.reasons)
    for offer in card.offers:
        yield ""
        yield from _offer(card, offer)


def because(classification: Classification) -> str:
    """The title of the reasons."""
    return "Why it is refused" if classification.verdict == "refused" else "Why a person decides"


def alike(reasons: Iterable[Reason]) -> Iterator[tuple[list[Reason], list[Reason]]]:
    """Reasons with one code: those to show, and the others, of which the packages are told alone."""
    for _, group in groupby(reasons, key=lambda reason: reason.code):
        found = list(group)
        shown = found if len(found) <= _MOST_ALIKE + 1 else found[:_MOST_ALIKE]
        yield shown, found[len(shown) :]


def _reasons(reasons: Iterable[Reason]) -> Iterator[str]:
    for shown, rest in alike(reasons):
        for reason in shown:
            hint = f" ({escape(reason.hint)})" if reason.hint else ""
            yield f"- {escape(reason.message)}{hint}"
        if rest:
            names = ", ".join(escape(reason.package or "") for reason in rest)
            yield f"- and so for {len(rest)} more: {names}"


def _offer(card: Card, offer: Offer) -> Iterator[str]:
    yield f"## {TITLES[offer.choice]}"
    yield ""
    plan = offer.plan
    if plan is None:
        yield "Nothing changes; whoever asked hears of it."
        return
    count = len(offer.new)
    yield f"{count} {'wheel' if count == 1 else 'wheels'} that the session lacks, {spell_size(offer.size)} together."
    yield f"The decision names the digest {_code(plan.digest)}."
    if plan.note:
        yield ""
        yield f"**{escape(plan.note)}**"
    if offer.difference is not None:
        yield ""
        for title, items in (
            ("Comes", offer.difference.added),
            ("Changes", offer.difference.changed),
            ("Goes", offer.difference.removed),
        ):
            if items:
                yield f"- **{title}:** {', '.join(map(escape, items))}"
    if offer.new:
        yield ""
        yield "| package | version | size | licence | age | required by | known vulnerabilities | sha256 |"
        yield "|---|---|--:|---|--:|---|---|---|"
        for wheel in offer.new:
            age = card.age(wheel)
            cells = (
                escape(wheel.name) + (f" (uploaded; import {some_names(wheel.imports)})" if wheel.uploaded else ""),
                escape(wheel.version),
                spell_size(wheel.size),
                escape(wheel.licence or "not stated"),
                "unknown" if age is None else f"{age} {'day' if age == 1 else 'days'}",
                ", ".join(map(escape, wheel.required_by)) or "the request",
                _vulnerabilities(wheel.vulnerabilities),
                _code(wheel.sha256),
            )
            yield f"| {' | '.join(cells)} |"


def some_names(imports: Sequence[str], escape: Callable[[str], str] = escape) -> str:
    """A wheel may bring what its name does not promise; one that brings very much is cut short."""
    more = f" and {len(imports) - _NAMES} more" if len(imports) > _NAMES else ""
    return (", ".join(map(escape, imports[:_NAMES])) or "nothing") + more


def _vulnerabilities(known: Iterable[Vulnerability]) -> str:
    return "; ".join(
        escape(
            " ".join([item.id, *item.aliases])
            + (f" ({item.severity})" if item.severity else "")
            + (f", fixed in {' and '.join(item.fixed)}" if item.fixed else "")
        )
        for item in known
    )


def _code(text: str) -> str:
    """A digest as code; anything else would be no digest, and is escaped."""
    return f"`{text}`" if text.isalnum() and text.isascii() else escape(text)
