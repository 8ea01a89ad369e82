from __future__ import annotations

import pytest

from fairagent.collection.config import RecordsFile
from fairagent.collection.forms import records
from fairagent.collection.records import Faults, field_reader, template_fields


def test_reading_goes_on_after_a_fault(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"a": 1}\nnope\n\xff\n{"a": 2}\n')
    faults = Faults()
    assert [number for number, _ in records(path, RecordsFile(), faults)] == [1, 4]
    assert [fault.line for fault in faults.entries] == [2, 3]
    for other in (".I 1\n.W\nwords\n", "[\n{\n", "id,text\n1,x\n"):
        path.write_text(other * 99)
        faults = Faults()
        assert list(records(path, RecordsFile(), faults)) == []
        assert [fault.line for fault in faults.entries] == [1]


def test_templates():
    assert template_fields("plain") == ()
    assert template_fields("{a}-{b}") == ("a", "b")
    with pytest.raises(ValueError, match="no field 'b'; there are: a"):
        field_reader("{a}-{b}")({"a": 1})
    assert field_reader("{a}")({"a": "{b}"}) == "{b}"
    for malformed in ("{", "}", "{}", "{a!r}", "{a:>10}", "{a[0]}", "{a.real}"):
        with pytest.raises(ValueError, match=r"."):
            template_fields(malformed)
