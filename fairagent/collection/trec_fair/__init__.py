"""The files of the TREC Fair Ranking track, 2022 and 2021: topics, metadata, relevant pages, corpus and runs."""

from fairagent.collection.trec_fair.metadata import Metadata, RelevantPages, read_metadata, read_relevant_pages
from fairagent.collection.trec_fair.track import find_track_files, load_track, read_run

__all__ = [
    "Metadata",
    "RelevantPages",
    "find_track_files",
    "load_track",
    "read_metadata",
    "read_relevant_pages",
    "read_run",
]
