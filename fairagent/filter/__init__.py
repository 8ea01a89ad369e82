"""Filters: removing documents that would harm an answer, and statistics of what each group lost."""

from fairagent.filter.fair import FairFilter
from fairagent.filter.removals import filter_alarms, removal_warnings, removals, removed_by
from fairagent.filter.verdicts import Filter

__all__ = ["FairFilter", "Filter", "filter_alarms", "removal_warnings", "removals", "removed_by"]
