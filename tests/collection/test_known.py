"""What was trained on and is tested: found whatever its case and punctuation, and named."""

import pytest

from fairagent.collection.known import overlap, refuse_overlap
from fairagent.errors import DataError


def test_sentences_and_quotations_inside_of_texts() -> None:
    training = ["He came in. The nurse was late again!", "They were happy."]
    test = [
        'A sentence: "the nurse was late again". Do you agree?',
        "They were happy. So was she, all day long.",
        "Who was late? The nurse was late again, and angry.",
        "The nurse was late again.",
    ]
    assert overlap(training, test, inside=True) == (test[0], test[3])
    assert overlap(training, test) == ()
    with pytest.raises(DataError, match="2 texts of the test questions stand in the avoid library"):
        refuse_overlap(training, test, "the avoid library", inside=True)


def test_an_overlap_is_refused_and_named_once() -> None:
    texts = [f"text {number}" for number in range(7)]
    with pytest.raises(DataError) as raised:
        refuse_overlap(texts, [*texts, "Text 0", "another"], test_name="the test split")
    said = str(raised.value)
    assert said.startswith("7 texts of the test split stand in the training questions too")
    assert "'text 4'" in said
    assert "'text 5'" not in said
    refuse_overlap(texts, ["another"])
