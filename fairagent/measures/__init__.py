"""Measures of exposure, fairness and relevance: pure functions on arrays, and `Measure` objects built on them.

Memberships are (n, g), a row a document in rank order, column 0 `UNKNOWN`; ranks start at 1; logarithms are
natural unless a base is given. What is not defined is a DataError, never a nan.
"""

# ruff: noqa: F403
from fairagent.measures.base import *
from fairagent.measures.expected_exposure import *
from fairagent.measures.exposure import *
from fairagent.measures.parse import *
from fairagent.measures.ranking import *
from fairagent.measures.unawareness import *
