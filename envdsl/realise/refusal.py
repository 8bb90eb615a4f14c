"""Refusals of the intake: every one names the wheel, the member where there is one, and the rule."""

from __future__ import annotations

from envdsl.errors import EnvdslError


def refusal(wheel: str, rule: str, reason: str, *, member: str | None = None, hint: str | None = None) -> EnvdslError:
    """The error for a wheel that breaks ``rule``; its code is ``intake-<rule>``.

    ``reason`` completes the sentence "<wheel>: <member> ...".
    """
    subject = f"{wheel}: {printable(member)} " if member is not None else f"{wheel}: "
    return EnvdslError.of(
        f"intake-{rule}",
        subject + reason,
        hint=hint,
        details={"wheel": wheel, "member": member, "rule": rule},
    )


def printable(name: str) -> str:
    """A hostile name, safe for a terminal: quoted, control characters escaped, cut where it is absurdly long."""
    text = ascii(name) if not name.isprintable() else repr(name)
    return text if len(text) <= 200 else f"{text[:120]}…{text[-60:]}"
