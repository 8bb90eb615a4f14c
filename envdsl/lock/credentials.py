"""Who we are to an index: from its URL, the environment, or the keyring. netrc is read by the HTTP client.

Nothing here is ever shown: a credential goes into an ``Authorization`` header, or into the environment of uv.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from envdsl.lock.source import IndexSource

_KEYRING_TIMEOUT = 60.0  # seconds; a keyring may ask its user


def variable(name: str, what: str) -> str:
    """The name of uv's variable for a named index: ``UV_INDEX_<NAME>_USERNAME`` or ``…_PASSWORD``."""
    return f"UV_INDEX_{re.sub('[^A-Z0-9]', '_', name.upper())}_{what}"


def credentials(source: IndexSource, environment: Mapping[str, str], *, keyring: bool) -> tuple[str, str] | None:
    """User name and password for ``source``; None where nothing but netrc could know them."""
    username, password = source.userinfo or ("", "")
    if source.name:
        username = environment.get(variable(source.name, "USERNAME")) or username
        password = environment.get(variable(source.name, "PASSWORD")) or password
    if password or source.directory is not None:
        return (username, password) if password or username else None
    if keyring and (found := _from_keyring(source.url, username, environment)):
        return found
    return (username, "") if username else None


def _from_keyring(url: str, username: str, environment: Mapping[str, str]) -> tuple[str, str] | None:
    """What ``keyring get`` has for the URL, then for its host, as uv and pip ask."""
    import shutil

    program = shutil.which("keyring", path=environment.get("PATH"))
    if program is None:
        return None
    for service in (url, urlsplit(url).netloc):
        if username:
            lines = _keyring([program, "get", service, username], environment)
            if lines:
                return username, lines[0]
        else:
            lines = _keyring([program, "get", service, "--mode", "creds"], environment)
            if len(lines) >= 2:
                return lines[0], lines[1]
    return None


def _keyring(command: list[str], environment: Mapping[str, str]) -> list[str]:
    import subprocess

    try:
        done = subprocess.run(
            command,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            timeout=_KEYRING_TIMEOUT,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    return done.stdout.splitlines() if done.returncode == 0 else []
