"""A large project evaluates in time that grows as it does."""

from __future__ import annotations

import time
from statistics import median

from envdsl.evaluate.project import evaluate
from tests.evaluate.language import MemoryReader


def project(layers: int) -> MemoryReader:
    pairs = [
        f"""base b{n} {{
              python = common.python; description = "layer ${{toString {n}}}";
              packages = common.shared ++ [ "package-{n}>={n % 9}.1" "rich>=13" ] ++ optional true "tomli-{n % 50}";
              env = {{ A = "x"; B = "b{n}"; }};
            }}
            x x{n} on b{n} {{ packages = [ "extra-{n}" ] ++ map (n: "p-${{n}}") [ "a" "b" ]; }}"""
        for n in range(0, layers, 2)
    ]
    common = 'let python = "3.12"; let shared = [ "python-docx" "lxml>=5" ];'
    return MemoryReader({"main.layer": 'import "common.layer" as common;\n' + "\n".join(pairs), "common.layer": common})


def seconds(reader: MemoryReader, count: int) -> float:
    begin = time.process_time()
    assert len(evaluate(["main.layer"], reader).layers) == count
    return time.process_time() - begin


def test_a_thousand_layers_take_about_ten_times_a_hundred() -> None:
    """The table of speeds: at most 12 times; twice that here, for machines that do other things meanwhile."""
    small, large = project(100), project(1000)
    seconds(small, 100)
    assert median(seconds(large, 1000) for _ in range(3)) < 24 * median(seconds(small, 100) for _ in range(3))
