"""Test collections: documents, topics, relevance judgments, groups, and target shares."""

from fairagent.collection.collection import Collection
from fairagent.collection.groups import Groups, Intersection, TopicGroups
from fairagent.collection.load import load_collection
from fairagent.collection.table import GroupTable
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
