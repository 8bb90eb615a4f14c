"""Names, versions and metadata."""

from __future__ import annotations

from tests.realise.archives import RawMember
from tests.realise.corpus.case import Case, Wheel, without

IDENTITIES = (
    Case(
        "dist-info-in-capitals",
        "pypa/installer#134",
        "Quart-0.17.0 spells its dist-info directory as its name, not normalised",
        Wheel(
            name="Quart",
            info="Quart-0.17.0.dist-info",
            version="0.17.0",
            filename="quart-0.17.0-py3-none-any.whl",
        ),
        holds=lambda root: (root / "site-packages/Quart-0.17.0.dist-info/METADATA").is_file(),
    ),
    Case(
        "file-name-in-capitals",
        "pypa/wheel#411",
        "Django-3.2.5 with a dist-info directory that is normalised, in a file that is not",
        Wheel(
            name="Django",
            info="django-3.2.5.dist-info",
            version="3.2.5",
            filename="Django-3.2.5-py3-none-any.whl",
        ),
    ),
    Case(
        "dots-in-the-name",
        "pypa/installer#135",
        "zope.interface keeps the dot of its name in file and directory",
        Wheel(
            name="zope.interface",
            info="zope.interface-5.4.0.dist-info",
            version="5.4.0",
            filename="zope.interface-5.4.0-py3-none-any.whl",
        ),
    ),
    Case(
        "version-not-normalised",
        "pypa/packaging.python.org#1789",
        "directories with a version that PEP 440 spells otherwise: 1.0.0rc1 for 1.0RC1",
        Wheel(version="1.0RC1", info="demo-1.0RC1.dist-info", filename="demo-1.0rc1-py3-none-any.whl"),
    ),
    Case(
        "wheel-version-1.9",
        "pypa/pip#1521",
        "a newer minor Wheel-Version asks for a warning",
        Wheel(wheel_version="1.9"),
        warning="Wheel-Version is 1.9",
    ),
    Case(
        "wheel-version-2.0",
        "pypa/pip#12723",
        "a newer major Wheel-Version must not be installed",
        Wheel(wheel_version="2.0"),
        code="intake-wheel-version",
    ),
    Case(
        "metadata-of-another-version",
        "Yujia-Yan/Transkun#4",
        "the file says 0.1.2a0, METADATA 0.1.2",
        Wheel(version="0.1.2", info="demo-0.1.2a0.dist-info", filename="demo-0.1.2a0-py3-none-any.whl"),
        code="intake-identity",
    ),
    Case(
        "local-version-not-in-metadata",
        "PozzettiAndrea/cuda-wheels#2",
        "renamed by hand: the local version stands in the names alone, and tools reinstall for ever",
        Wheel(
            version="0.2",
            info="demo-0.2+cu130.dist-info",
            filename="demo-0.2+cu130-cp312-cp312-linux_x86_64.whl",
        ),
        code="intake-identity",
    ),
    Case(
        "renamed-file",
        "astral-sh/uv#983",
        "a valid name of the file that is not the version inside",
        Wheel(filename="demo-2.0-py3-none-any.whl"),
        code="intake-identity",
    ),
    Case(
        "another-distribution",
        "pypa/pip#12579",
        "the dist-info directory belongs to another name",
        Wheel(name="python-dateutil", info="python_dateutil-1.0.dist-info"),
        code="intake-identity",
    ),
    Case(
        "stale-dist-info",
        "pypa/pip#3613",
        "a build directory that was not cleaned left the metadata of the version before",
        Wheel(files={"demo.py": b"", "demo-0.9.dist-info/METADATA": b"Name: demo\nVersion: 0.9\n"}),
        code="intake-dist-info-ambiguous",
    ),
    Case(
        "build-number-in-dist-info",
        "pypa/wheel#263",
        "RECORD in one directory, the rest in one with the build number",
        Wheel(
            files={"demo.py": b"", "demo-1.0-123.dist-info/top_level.txt": b"demo\n"},
            filename="demo-1.0-123-py3-none-any.whl",
        ),
        code="intake-dist-info-ambiguous",
    ),
    Case(
        "second-distribution-in-purelib",
        "pypa/pip#7494",
        "the way round the rule of one dist-info: the second comes in by .data/purelib",
        Wheel(data={"purelib/other-2.0.dist-info/METADATA": b"Name: other\nVersion: 2.0\n"}),
        code="intake-dist-info-ambiguous",
    ),
    Case(
        "metadata-not-utf-8",
        "pypa/pip#9866",
        "METADATA that begins with 0xff breaks whatever lists the environment later",
        Wheel(metadata=b"\xff\xfeName: demo\nVersion: 1.0\n"),
        code="intake-metadata-encoding",
    ),
    Case(
        "nothing-but-metadata",
        "toumorokoshi/deepmerge#14",
        "a release whose wheel has no modules",
        Wheel(files={}),
    ),
    Case(
        "record-member-with-backslash",
        "PyO3/maturin#251",
        "a file called dist-info\\RECORD, as Windows joins paths",
        Wheel(
            record=without("demo-1.0.dist-info/RECORD"),
            members=lambda members: [*members[:-1], RawMember(b"demo-1.0.dist-info\\RECORD", members[-1].content)],
        ),
        code="intake-name-backslash",
    ),
)
