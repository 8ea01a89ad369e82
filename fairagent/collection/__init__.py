"""Test collections: documents, topics, relevance judgments, groups and targets.

`load` reads what a collection file names (`config` has its keys), and reports every error with file and line. `table`
holds who belongs to which group, `targets` what share of exposure each group should get, `exposure` measures a
ranking against it. `trec_fair` reads the track's official files, `demo` has the shipped made-up collection.
"""

from fairagent.collection.collection import Collection
from fairagent.collection.load import load_collection
from fairagent.collection.table import Groups, GroupTable, Intersection, TopicGroups
from fairagent.collection.targets import Target, make_target

__all__ = [
    "Collection",
    "GroupTable",
    "Groups",
    "Intersection",
    "Target",
    "TopicGroups",
    "load_collection",
    "make_target",
]
