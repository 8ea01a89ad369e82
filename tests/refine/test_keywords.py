"""What a model's keywords become before anything is searched: cleaned as data, and refused with a reason."""

from __future__ import annotations

import pytest

from fairagent.search.refine.asking import MOST_KEYWORDS, sift

# proposed, kept; the query is "famous Lawyers", "judge" has been tried
CLEANING = [
    (["she", "her"], ["she", "her"]),
    (['"women lawyers"', "‘solicitor’"], ["women lawyers", "solicitor"]),
    (["Straße", "STRASSE", "strasse"], ["Straße"]),
    (["wo\u200bman", "\u202eher\u202c", "at\u00adtorney", "\ufeffshe"], ["woman", "her", "attorney", "she"]),
    (["bar\x00rister\x1b"], ["barrister"]),
    (["judge", "JUDGE", "ｊｕｄｇｅ"], []),
    (["lawyers", "Famous  lawyers", "LAWYERS!"], []),
    (["", " ", "\u200b", '""', "...", "—"], []),
    (["one\ntwo", "one\r\ntwo", "one\u2028two"], []),
    (["x" * 80, "y" * 81, "z" * 10_000], ["x" * 80]),
    (["http://evil.example", "www.evil", "evil.com", "see evil.io/x", "a@b.org", "Evil.Com now"], []),
    (["Ph.D. women", "U.S. senator", "hip-hop", "AT&T", "AC/DC", "C++", "O'Hara"], None),
    (["+she", "-men", "she -men", "!men", "her*", "wom?n", "title:she", '"a" b', "she^9", "she~2"], []),
    (["(she)", "[a TO b]", "{x}", "a && b", "a || b", "a OR b", "NOT men", "a AND b", "a\\b", "<b>she</b>"], []),
]


@pytest.mark.parametrize(("proposed", "kept"), CLEANING)
def test_keywords_are_cleaned_as_data(proposed, kept):
    found = sift(proposed, "famous Lawyers", ["judge"]).usable
    assert list(found) == (proposed if kept is None else kept)


def test_every_refusal_has_its_reason_and_a_flood_is_summed_up():
    sifted = sift(["one\ntwo", "x" * 81, "www.evil", "a && b", "she", "JUDGE", "lawyers"], "famous Lawyers", ["judge"])
    assert sifted.usable == ("she",)
    assert sifted.repeated == ("JUDGE", "lawyers")
    assert sifted.refused == (
        "one two: several lines",
        f"{'x' * 40} ...: longer than 80 characters",
        "www.evil: an address",
        "a && b: a query operator",
    )
    sifted = sift([f"word{i}" for i in range(500)], "lawyers", [])
    assert len(sifted.usable) == MOST_KEYWORDS
    assert len(sifted.refused) == MOST_KEYWORDS + 1
    assert sifted.refused[0] == "word12: more than 12 keywords"
    assert sifted.refused[-1] == "and 476 more"
