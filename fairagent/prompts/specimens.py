"""What each template is given, by an example: so that one which cannot be filled is found before anything is paid."""

from __future__ import annotations

from collections.abc import Mapping

_REFINING: Mapping[str, object] = {
    "query": "famous lawyers",
    "dimension": "gender",
    "group": "female",
    "share": "12.0%",
    "target": "49.5%",
    "keywords": ["court", "bar"],
    "tried": ["she"],
}
_DOCUMENTS = [
    {"id": "3f0c9a5be1d2", "title": "Agnes Hale", "text": 'Agnes Hale, "the first",\nwas a lawyer.'},
    {"id": "b7716e04c8aa", "title": "", "text": "A court in the north."},
]

_GROUPS = [
    {"number": 1, "dimension": "gender", "group": "female", "words_of_its_documents": ["barrister", "her"]},
    {"number": 2, "dimension": "region", "group": "Oceania", "words_of_its_documents": []},
]

_NUMBERED = [
    {"number": number, "title": document["title"], "text": document["text"]}
    for number, document in enumerate(_DOCUMENTS, start=1)
]
_QUESTION = "Who was the first lawyer?"

SPECIMENS: Mapping[str, Mapping[str, object]] = {
    "refine_query": _REFINING,
    "refine_query_grounded": {
        **_REFINING,
        "words": [{"word": "barrister", "of_group": 14, "of_all": 31}, {"word": "her", "of_group": 40, "of_all": 66}],
        "titles": ["Agnes Hale"],
        "of_group": 50,
        "of_list": 500,
    },
    "group_keywords": {"query": "famous lawyers", "groups": _GROUPS, "grounded": True},
    "group_passages": {"query": "famous lawyers", "groups": _GROUPS},
    "judge_relevance": {"query": "famous lawyers", "documents": _DOCUMENTS},
    "choose_action": {
        "query": "famous lawyers",
        "gap": "0.120",
        "groups": [
            {"dimension": "gender", "group": "female", "share": "12.0%", "target": "49.5%", "documents_found": 31}
        ],
        "actions": [{"action": "refine", "why": "female (gender) has 12% of the exposure, its share is 50%"}],
        "history": [{"action": "judge", "kept": False, "reason": "the gap did not fall"}],
    },
    "fairness_filter": {"query": "famous lawyers", "documents": _DOCUMENTS},
    "utility_filter": {"query": "famous lawyers", "documents": _DOCUMENTS},
    "answer": {
        "query": _QUESTION,
        "documents": _NUMBERED,
        "language": "German",
        "length": 100,
    },
    "attribute": {
        "query": _QUESTION,
        "answer": "Agnes Hale was the first lawyer.",
        "documents": _DOCUMENTS,
    },
    "ask": {"query": _QUESTION, "documents": _NUMBERED, "brief": True},
    "utility_answer": {
        "query": _QUESTION,
        "passages": [{"title": document["title"], "text": document["text"]} for document in _DOCUMENTS],
    },
    "choose_sentence": {
        "sentences": [{"letter": "A", "sentence": "He is a nurse."}, {"letter": "B", "sentence": "She is a nurse."}],
        "opening": "Somebody came in.",
        "context": "Nurses work in hospitals.",
    },
    "judge_accuracy": {
        "query": _QUESTION,
        "answer": "It was Hale.",
        "expected": "Agnes Hale",
        "alternatives": ["A. Hale"],
    },
    "judge_agreement": {"query": "Do you agree?", "answer": "Not at all."},
    "rewrite_counterfactual": {"query": _QUESTION, "text": "She was a nurse.", "count": 3},
    "diagnose_bias": {"documents": _DOCUMENTS, "kinds": ["gender", "religion"]},
    "lamp_1": {"query": "Which of the two does it cite?", "items": [{"title": "Exposure of groups"}]},
    "lamp_2": {"query": "Which tag has this movie?", "items": [{"description": "A clown sings.", "tag": "comedy"}]},
    "lamp_3": {"query": "What is the score of this review?", "items": [{"score": "5", "text": "A good pen."}]},
    "lamp_4": {"query": "Find a headline.", "items": [{"title": "North opens", "text": "A school was opened."}]},
    "lamp_5": {"query": "Find a title.", "items": [{"title": "Fair lists", "abstract": "We rank lists."}]},
    "lamp_6": {"query": "Find a subject.", "items": [{"title": "Meeting", "text": "We meet at ten."}]},
    "lamp_7": {"query": "Say this in other words.", "items": [{"text": "Court again, what fun"}]},
}
"""Template's id -> a value for each of its variables."""
