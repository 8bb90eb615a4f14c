"""Where wheels come from on this machine: the ordered sources, and who we are to them.

The order of authority: what ``envdsl.toml`` names; else what uv is configured with; else what pip is
configured with; else the public index. The *default* index, which is asked last, follows the same chain by
itself, so that a project that names an extra index still uses the machine's mirror for all the rest.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from envdsl.errors import EnvdslError, ExitStatus
from envdsl.lock import ambient
from envdsl.lock.credentials import credentials
from envdsl.lock.source import IndexSource
from envdsl.model.span import Span
from envdsl.redaction import redact

DEFAULT_NAME = "default"


@dataclass(frozen=True, slots=True)
class _Settled:
    sources: tuple[IndexSource, ...]
    strategy: str
    keyring: bool
    owners: tuple[IndexSource, ...]
    left_out: frozenset[IndexSource] = frozenset()


class IndexConfiguration:
    """Where wheels come from. Nothing is read before it is asked for, as most commands never ask."""

    def __init__(self, settle: Callable[[], _Settled], environment: Mapping[str, str]) -> None:
        self.environment = environment
        self._settle = settle
        self._known: dict[IndexSource, tuple[str, str] | None] = {}
        self._guard = threading.Lock()

    @classmethod
    def discover(
        cls, declared: Sequence[IndexSource] = (), *, environment: Mapping[str, str] = os.environ
    ) -> IndexConfiguration:
        """The configuration of this machine under the sources that ``envdsl.toml`` declares.

        ``environment`` is what uv, pip and the keyring see.
        """
        return cls(lambda: _settle(tuple(declared), environment), environment)

    @cached_property
    def _settled(self) -> _Settled:
        return self._settle()

    @property
    def sources(self) -> tuple[IndexSource, ...]:
        """In the order of their priority: flat ones, extra indexes, the default index last.

        Raises EnvdslError (``lock-index-configuration``) for a file of uv or pip that cannot be read.
        """
        return self._settled.sources

    @property
    def strategy(self) -> str:
        """uv's ``--index-strategy``: with ``first-index`` a project comes from the first index that knows it (so
        that nobody can slip a newer version of an internal name into a public index)."""
        return self._settled.strategy

    @property
    def keyring(self) -> bool:
        """Whether a ``keyring`` program is to be asked for credentials."""
        return self._settled.keyring

    @property
    def owners(self) -> tuple[IndexSource, ...]:
        """The sources with ``packages``, in order, also those that a layer's ``index`` leaves out."""
        return self._settled.owners

    @property
    def reachable(self) -> tuple[IndexSource, ...]:
        """All sources that may be asked about some project: :attr:`sources`, and explicit ones for what they own."""
        return _unique((*(owner for owner in self.owners if owner not in self._settled.left_out), *self.sources))

    def owner(self, project: str) -> IndexSource | None:
        """The source that ``project`` (a normalised name) belongs to; None for a name that no pattern matches.

        Where patterns of several sources match, the first one has it.
        """
        return next((source for source in self.owners if source.owns(project)), None)

    def sources_for(self, project: str) -> tuple[IndexSource, ...]:
        """The sources that may be asked about ``project``, a normalised name: its owner alone, or else all.

        None at all where a layer's ``index`` leaves the owner out: nobody else may learn of the name or answer for it.
        """
        owner = self.owner(project)
        if owner is None:
            return self.sources
        return () if owner in self._settled.left_out else (owner,)

    def source_of(self, url: str) -> IndexSource | None:
        """The source that ``url`` is a page of."""
        found = [source for source in self.reachable if f"{url}/".startswith(f"{source.url.rstrip('/')}/")]
        return max(found, key=lambda source: len(source.url), default=None)

    def restricted(self, names: Sequence[str], span: Span | None = None) -> IndexConfiguration:
        """Only the sources of these names, in this order (a layer's ``index``); all but explicit ones for no names.

        Raises :class:`EnvdslError` (``lock-unknown-index``) for a name that no source has.
        """
        if not names:
            return self._with(tuple(source for source in self.sources if not source.explicit))
        by_name = {source.name or (DEFAULT_NAME if source.default else ""): source for source in self.sources}
        by_name.pop("", None)
        for name in names:
            if name not in by_name:
                import difflib

                close = difflib.get_close_matches(name, by_name, 1)
                known = ", ".join(sorted(by_name)) or "none"
                raise EnvdslError.of(
                    "lock-unknown-index",
                    f"no index is named `{name}`",
                    span=span,
                    hint=f"did you mean `{close[0]}`?" if close else f"known names: {known}; declare it in envdsl.toml",
                    exit_status=ExitStatus.USAGE,
                )
        chosen = tuple(by_name[name] for name in names)
        return self._with(chosen, frozenset(self.owners) - frozenset(chosen))

    def _with(
        self, sources: tuple[IndexSource, ...], left_out: frozenset[IndexSource] = frozenset()
    ) -> IndexConfiguration:
        settled = replace(self._settled, sources=sources, left_out=left_out)
        return IndexConfiguration(lambda: settled, self.environment)

    def credentials(self, source: IndexSource) -> tuple[str, str] | None:
        """User name and password for ``source``, asked for once; None where none are known (netrc aside)."""
        with self._guard:
            if source not in self._known:
                self._known[source] = credentials(source, self.environment, keyring=self.keyring)
            return self._known[source]

    def redact(self, text: str) -> str:
        """``text`` without anything secret that this configuration knows of."""
        with self._guard:
            known = [pair[1] for pair in self._known.values() if pair]
        known += [source.userinfo[1] for source in self.reachable if source.userinfo]
        return redact(text, known)


def _settle(declared: tuple[IndexSource, ...], environment: Mapping[str, str]) -> _Settled:
    uv = ambient.of_uv(environment)
    pip = ambient.of_pip(environment)
    chosen = _declared(declared) if declared else uv if uv.configured else pip
    default = next((level.default for level in (chosen, uv, pip) if level.default), None)
    last = () if chosen.no_index else (default or _public_index(),)
    sources = _unique((*chosen.flat, *chosen.extra, *last))
    return _Settled(
        sources=sources,
        owners=tuple(source for source in sources if source.packages),
        strategy=(None if declared else chosen.strategy) or uv.strategy or ambient.FIRST_INDEX,
        keyring=uv.keyring or pip.keyring,
    )


def _declared(sources: Iterable[IndexSource]) -> ambient.Ambient:
    sources = tuple(sources)
    return ambient.Ambient(
        default=next((source for source in sources if source.default), None),
        extra=tuple(source for source in sources if not source.default and not source.flat),
        flat=tuple(source for source in sources if not source.default and source.flat),
    )


def _public_index() -> IndexSource:
    from pypi_simple import PYPI_SIMPLE_ENDPOINT

    return IndexSource(PYPI_SIMPLE_ENDPOINT, default=True)


def _unique(sources: Iterable[IndexSource]) -> tuple[IndexSource, ...]:
    """Each place once, where it stands first; as the default one it keeps its place at the end."""
    seen: dict[tuple[str, bool, tuple[str, ...]], IndexSource] = {}
    for source in sources:
        key = source.url.rstrip("/"), source.flat, source.packages
        if key not in seen or source.default:
            seen.pop(key, None)
            seen[key] = source
    return tuple(seen.values())
