from __future__ import annotations

from typing import Any

import pytest

from envdsl.sandbox.limits import Limits, parse_size


@pytest.mark.parametrize(
    ("text", "size"),
    [("0", 0), ("1000000", 1000000), ("64k", 65536), ("512M", 512 << 20),
     ("1.5G", 3 << 29), ("2GiB", 2 << 30), ("2 gb", 2 << 30), ("1T", 1 << 40)],
)  # fmt: skip
def test_sizes_are_read_in_powers_of_1024(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "M", "-1", "1e9", "12X", "1 2", "infinity", "٣"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a size"):
        parse_size(text)


@pytest.mark.parametrize(
    "limits",
    [{"memory": 0}, {"memory": 1000}, {"cpus": 0}, {"cpus": -1}, {"cpus": float("nan")}, {"cpus": float("inf")},
     {"pids": 0}, {"timeout": 0}, {"timeout": -1}, {"timeout": float("nan")}],
)  # fmt: skip
def test_limits_that_nothing_could_run_under_are_refused(limits: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"limit|timeout"):
        Limits(**limits)


def test_only_what_is_limited_asks_for_a_control_group() -> None:
    assert Limits(timeout=5).controllers == frozenset()
    assert Limits(memory=1 << 30, cpus=2).controllers == {"memory", "cpu"}
