"""Documents that would do harm to an answer are taken out of its context; what that takes from whom is counted."""

from fairagent.filter.fair import FairFilter
from fairagent.filter.removals import removal_warnings, removals
from fairagent.filter.verdicts import Filter

__all__ = ["FairFilter", "Filter", "removal_warnings", "removals"]
