"""The files of the TREC Fair Ranking track, 2022 and 2021: metadata, relevant pages and runs."""

from fairagent.collection.trec_fair.metadata import Metadata, RelevantPages, read_metadata, read_relevant_pages
from fairagent.collection.trec_fair.runs import read_run

__all__ = ["Metadata", "RelevantPages", "read_metadata", "read_relevant_pages", "read_run"]
