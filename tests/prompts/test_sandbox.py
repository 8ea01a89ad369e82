"""The sandbox: what a template may do, and after how little work, and memory, what it may not do is stopped."""

from __future__ import annotations

import tracemalloc

import pytest
from work import at_most

from fairagent.llm.prompts.sandbox import Left, TemplateFault, compile_template, render_template

# What a template may do: text with holes, conditions, loops over what it is given.
WELCOME = [
    ("{% for word in words %}{{ loop.index }}. {{ word }}\n{% endfor %}", "1. a\n2. b"),
    ("{% for word in words if word != 'a' %}{{ word|upper }}{% else %}none{% endfor %}", "B"),
    ("{% for key, word in pairs %}{{ key }}={{ word }}{% if not loop.last %};{% endif %}{% endfor %}", "x=1;y=2"),
    ("{% for word in record.words %}{{ word }}{% endfor %}{{ record['name']|tojson }}", 'ab"Zoë <\\"x\\">"'),
    ("{{ words|length }} {{ words[0] }} {{ words|last }} {{ words|join('-') }} {{ text[:3] }}", "2 a b a-b law"),
    ("{{ 'yes' if words is defined and 'a' in words else 'no' }} {# remark #}", "yes "),
    ("{% raw %}{{ 7 * 7 }}{% endraw %}", "{{ 7 * 7 }}"),
    ("{{ missing|default('none') }}", "none"),
]
GIVEN = {
    "words": ["a", "b"],
    "pairs": [("x", 1), ("y", 2)],
    "record": {"name": 'Zoë <"x">', "words": ["a", "b"]},
    "text": "lawyers",
}


@pytest.mark.parametrize(("text", "rendered"), WELCOME)
def test_what_a_template_may_do(text, rendered):
    template = compile_template(text, 1, "x.j2").template
    assert render_template(template, GIVEN, Left()) == rendered


# Refused when it is read, whatever the values.
REFUSED = [
    "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "{{ text['__class__'] }}",
    "{{ text|attr('__class__') }}",
    "{{ text.upper() }}",
    "{{ 'x' * 10**9 }}",
    "{{ 10 ** 100000000 }}",
    "{{ text ~ text }}",
    "{{ [words, words] }}",
    "{{ '%1000000000d'|format(1) }}",
    "{% set a = text %}",
    "{% macro m(n) %}{{ m(n) }}{{ m(n) }}{% endmacro %}{{ m(1) }}",
    "{% for a in range(1000000) %}{% endfor %}",
    "{% for a in 'x' %}{% endfor %}",
    "{% for a in words recursive %}{{ loop(words) }}{% endfor %}",
    "{% import 'x' as x %}",
    "{% from 'x' import y %}",
    "{% extends 'x' %}",
    "{% block b %}{% endblock %}",
    "{{ " + "(" * 20_000 + "1" + ")" * 20_000 + " }}",
    "{% for a in words %}" * 300 + "{% endfor %}" * 300,
    "{% for a in words %}{% endfor %}" * 1000,
    "{{ text" + "|trim" * 6000 + " }}",
    "{{ text" + ".a" * 300 + " }}",
    "{{ " + "not " * 300 + "text }}",
    "{{ text" + " and text" * 300 + " }}",
]

# Refused when it is rendered with values that it was written for.
STOPPED = [
    ("{% for a in text %}{% for b in text %}{% for c in text %}{% endfor %}{% endfor %}{% endfor %}", "too long"),
    ("{% for a in text %}" * 15 + "{% endfor %}" * 15, "too long"),
    ("{% for a in text %}{% for b in text %}{{ text }}{% endfor %}{% endfor %}", "longer than 64 kB"),
    ("{{ text" + "|join('xxxxxxxxxx')" * 20 + " }}", "a value is longer"),
    ("{{ text" + "|tojson" * 20 + " }}", "a value is longer"),
    ("{{ absent }}", "'absent' is undefined"),
    ("{{ text[words[1]] }}", "has no attribute '__class__'"),
    ("{{ secret|tojson }}", "object is nothing to print"),
    ("{{ text.format }}", "has no attribute 'format'"),
    ("{{ text.upper|upper }}", "has no attribute 'upper'"),
    ("{% for a in words %}{{ loop }}{% endfor %}", "LoopContext is nothing to print"),
    ("{{ secret }}", "object is nothing to print"),
    ("{{ nested|join }}", "object is nothing to print"),
    ("{{ many }}", "generator is nothing to print"),
    ("{{ function|trim }}", "builtin_function_or_method is nothing to print"),
]
HOSTILE = {**GIVEN, "text": "lawyers in Asia " * 10, "words": ["a", "__class__"], "secret": object()} | {
    "nested": [{"a": (1, object())}],
    "many": (letter for letter in "ab"),
    "function": len,
}


MOST_CALLS = 4_000_000
"""Of functions, while a template is read or filled."""


@pytest.mark.parametrize("text", REFUSED, ids=range(len(REFUSED)))
def test_hostile_templates_are_refused_with_little_work(text):
    with at_most(MOST_CALLS):
        compiled = compile_template(f"one\ntwo\n{text}", 5, "x.j2")
    assert compiled.template is None
    assert all(fault.message for fault in compiled.faults)
    assert compiled.faults[0].line in (5, 7)


@pytest.mark.parametrize(("text", "words"), STOPPED, ids=range(len(STOPPED)))
def test_hostile_renderings_are_stopped(text, words):
    template = compile_template(f"one\n{text}", 5, "x.j2").template
    with at_most(MOST_CALLS), pytest.raises(TemplateFault, match=words):
        render_template(template, HOSTILE, Left())
    # Once more: looking at the memory takes its time.
    tracemalloc.start()
    try:
        with pytest.raises(TemplateFault):
            render_template(template, HOSTILE, Left())
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 50e6
