"""The settings files under evaluations/collections load the real data, with the counts of their READMEs."""

from pathlib import Path

import pytest

from fairagent.collection import Collection, load_collection
from fairagent.settings import read_yaml

SETTINGS = Path(__file__).resolve().parents[2] / "evaluations" / "collections"

pytestmark = pytest.mark.shared

# topics, judgments, relevant ones, documents, dimensions
COUNTS = {
    "wikilead": (60, 12_080, 12_080, 19_229, ("gender", "region")),
    "reuters21578": (41, 7_710, 7_710, 11_320, ("region", "oecd1987")),
    "perspectrum": (680, 9_033, 9_033, 11_112, ("stance",)),
    "grepbiasir": (117, 702, 351, 702, ("gender",)),
    "trec22_biographies": (25, 10_782, 10_782, 19_488, ("gender",)),
    "allsides": (49, 15_247, 15_247, 37_554, ("leaning",)),
    "args_sigir19": (20, 252, 176, 373, ("stance",)),
    "cranfield": (225, 1_837, 1_837 - 225, 1_400, ()),
}


NOTES = {
    "reuters21578": ("2 judgments are repeated (with the same grade)",),
    "trec22_biographies": ("no document is in these groups of 'gender': nonbinary",),
}


def load(shared: Path, name: str) -> Collection:
    assert (SETTINGS / f"{name}.yaml").is_file()
    root = (SETTINGS / read_yaml(SETTINGS / f"{name}.yaml")["root"]).resolve()
    assert root == (shared / "data" / name).resolve()
    return load_collection(SETTINGS / f"{name}.yaml")


@pytest.mark.slow
@pytest.mark.parametrize("name", COUNTS)
def test_counts(shared, name):
    collection = load(shared, name)
    topics, judgments, relevant, documents, dimensions = COUNTS[name]
    grades = [grade for judged in collection.qrels.values() for grade in judged.values()]
    assert collection.name == name
    assert len(collection.topics) == topics
    assert (len(grades), sum(grade > 0 for grade in grades)) == (judgments, relevant)
    assert collection.groups.dimensions == dimensions
    ids = {document.id for document in collection.documents()}
    assert len(ids) == documents
    assert {id for judged in collection.qrels.values() for id in judged} <= ids
    assert collection.notes == NOTES.get(name, ())


def test_wikilead_people(shared):
    """Its README: 6,452 persons, of whom 254 have no gender, and 12,777 other pages."""
    collection = load(shared, "wikilead")
    ids = [document.id for document in collection.documents()]
    people = collection.groups.of_type("gender", ids)
    unlabeled = collection.groups.memberships("gender", ids)[:, 0] == 1
    assert (people.sum(), (~people).sum(), (people & unlabeled).sum()) == (6_452, 12_777, 254)
    assert (unlabeled | people).all()
    assert collection.groups.of_type("region", ids) is None
