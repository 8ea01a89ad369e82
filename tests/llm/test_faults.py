from __future__ import annotations

from datetime import UTC, datetime

import pytest

from fairagent.llm.endpoint import retry_after

NOW = datetime(2026, 5, 1, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "2.5"}, 2.5),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after-ms": "x", "retry-after": "9"}, 9.0),
        ({"retry-after": "Fri, 01 May 2026 12:00:20 GMT"}, 20.0),
        ({"retry-after": "Fri, 01 May 2026 12:00:20"}, 20.0),
        ({"retry-after": "Fri, 01 May 2026 11:00:00 GMT"}, 0.0),
        ({"retry-after": "1e999"}, None),
        ({"retry-after": "Fri, 01 May 99999999 12:00:20 GMT"}, None),
    ],
)
def test_retry_after(headers, seconds):
    assert retry_after(headers, NOW) == seconds
