"""Filters: removing documents that would harm an answer, and statistics of what each group lost."""

from fairagent.filter.fair import FairFilter
from fairagent.filter.removals import removal_warnings, removals
from fairagent.filter.verdicts import Filter

__all__ = ["FairFilter", "Filter", "removal_warnings", "removals"]
