"""Odd and hostile wheels, as public issue trackers of installers report them, built small.

Each case says why it is here, who reported it, and what has to become of it: accepted, perhaps with a warning, or
refused with a code. The wheels themselves are not those of the reports: only the oddity is.
"""

from __future__ import annotations

from tests.realise.corpus.case import Case
from tests.realise.corpus.containers import CONTAINERS
from tests.realise.corpus.identities import IDENTITIES
from tests.realise.corpus.places import PLACES
from tests.realise.corpus.records import RECORDS

CASES: tuple[Case, ...] = (*IDENTITIES, *RECORDS, *CONTAINERS, *PLACES)
