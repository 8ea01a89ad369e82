"""Valid files, made invalid: by bytes, by lines, by tokens, and by the values of YAML and JSON."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from random import Random
from typing import Any

import yaml

ODD_BYTES = (
    *(b"\xff", b"\x00", b"\t", b"\n", b"\r", b"\r\n", b",", b" ", b"\x1f\x8b", b"-", b"9", b"\xe2\x80", b"\x0b"),
    *(b'"', b"{", b"}", b"[", b"]", b":", b"&a", b"*a", b"<<", b"!!", b"\\ud800", b"\x1b[2J", b"%", b"'", b"|", b">"),
    *("\u202e".encode(), "\u2028".encode(), "\ufeff".encode(), b"\xed\xa0\x80", b"\xf0\x9f\x98\x80", b"\\u0000"),
)
ODD_TOKENS = (
    *("", "nan", "NaN", "inf", "-Infinity", "1e999", "1e-400", "-1", "0", "+7", "0x10", "1_000", "9" * 30, "9" * 5000),
    *("null", "true", "~", "[]", "{}", "2147483648", "-9223372036854775809", "1:30:00", "2024-13-45", "\u0663", "\xb2"),
    *("../../../etc/x", "/", ".", "\x00", "x" * 300, "a b", "*", "&a", "<<: *a", "!!python/none x", "@UNKNOWN"),
    *("{q}", "{a.b}", "{", "}", "{0}", "%s", "{{ 7 * 7 }}", "\x1b]0;x\x07", "\u202e", "=cmd()", "1e5", "1.5", "-0.0"),
)
ODD_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2**31, 2**63, 10**30, 0.0, -0.5, 1e308, 1e-320, "", " ", "\n", "\x00", "x" * 3000),
    *([], {}, [[]], {"": None}, [None], ["a", "a"], {"a": {"a": {"a": {}}}}, [1, 2, 3], {"kind": "none"}, "auto"),
    *("../x", "/", "..", "a/b", "\ud800", "\u202e", "\x1b[31m", "@UNKNOWN", "{id}", "{id}-{id.x}", "{", "*.jsonl"),
)
BOMBS = (
    "a: &a [x, x, x, x, x, x, x, x, x]\n"
    + "".join(f"{b}: &{b} [{', '.join([f'*{a}'] * 9)}]\n" for a, b in pairwise("abcdefghi")),
    "a: &a {k: 1}\n" + "".join(f"{b}: &{b} {{<<: [*{a}, *{a}]}}\n" for a, b in pairwise("abcdefghijklmnopqrstuvw")),
    "".join(f"key{number}: 1\n" for number in range(30_000)),
    "[" * 20_000,
    "{a: " * 20_000,
    "- " * 20_000,
    "n: " + "9" * 20_000 + "\n",
    "n: 0x" + "f" * 20_000 + "\n",
    "n: " + "1:" * 20_000 + "1\n",
    "a: &a [*a]\n",
    "a: !!binary x\nb: !!timestamp x\nc: !!int ''\n",
    "? " * 5_000,
)
_TOKEN = re.compile(rb"[A-Za-z0-9_.+-]+")


class Whole(Random):
    """Chance that damages nothing."""


def damaged(random: Random, content: bytes, form: str = "") -> bytes:
    """The content with one to four things wrong with it; `form` (yaml, json, jsonl) says what it is."""
    if isinstance(random, Whole):
        return content
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        ways = [_bytes, _bytes, _lines, _tokens]
        if form:
            ways += [_values] * 4
        content = random.choice(ways)(random, content, form)
    if form == "yaml" and random.random() < 0.05:
        bomb = random.choice(BOMBS).encode()
        content = random.choice((bomb, content + b"\n" + bomb, bomb + content))
    return content


def _bytes(random: Random, content: bytes, form: str) -> bytes:
    place = random.randrange(len(content) + 1)
    way = random.randrange(6)
    if way == 0 and content:
        place = random.randrange(len(content))
        return content[:place] + bytes([content[place] ^ (1 << random.randrange(8))]) + content[place + 1 :]
    if way == 1:
        return content[:place] + random.choice(ODD_BYTES) * random.choice((1, 1, 2, 50)) + content[place:]
    if way == 2:
        return content[:place]
    if way == 3:
        return content[:place] + content[place + random.choice((1, 2, 8, 64)) :]
    if way == 4:
        piece = content[place : place + random.choice((1, 8, 64))]
        return content[:place] + piece * random.choice((2, 3, 100)) + content[place:]
    return content[:place] + random.randbytes(random.choice((1, 4, 64))) + content[place:]


def _lines(random: Random, content: bytes, form: str) -> bytes:
    lines = content.split(b"\n")
    place, other = random.randrange(len(lines)), random.randrange(len(lines))
    way = random.randrange(5)
    if way == 0:
        del lines[place]
    elif way == 1:
        lines.insert(place, lines[other])
    elif way == 2:
        lines[place], lines[other] = lines[other], lines[place]
    elif way == 3:
        lines[place : place + 1] = [lines[place]] * random.choice((2, 3, 200))
    else:
        lines[place] = random.choice(ODD_TOKENS).encode("utf-8", "surrogatepass")
    return b"\n".join(lines)


def _tokens(random: Random, content: bytes, form: str) -> bytes:
    found = list(_TOKEN.finditer(content))
    if not found:
        return content
    one, other = random.choice(found), random.choice(found)
    odd = random.choice(ODD_TOKENS).encode("utf-8", "surrogatepass")
    return content[: one.start()] + random.choice((odd, odd, other[0])) + content[one.end() :]


def _values(random: Random, content: bytes, form: str) -> bytes:
    """Another value, key or nesting somewhere in the tree; the content as it is where it has none."""
    try:
        text = content.decode()
        if form == "jsonl":
            lines = text.splitlines()
            place = random.randrange(len(lines))
            lines[place] = json.dumps(_changed(random, json.loads(lines[place])))
            return "\n".join(lines).encode() + b"\n"
        if form == "json":
            return json.dumps(_changed(random, json.loads(text))).encode()
        tree = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader)) if len(text) < 20_000 else None
        return yaml.safe_dump(_changed(random, tree), sort_keys=False, allow_unicode=True).encode()
    except (ValueError, IndexError, RecursionError, yaml.YAMLError, UnicodeError, TypeError):
        return content


def _changed(random: Random, value: Any) -> Any:
    if isinstance(value, dict) and value and random.random() < 0.9:
        key = random.choice(list(value))
        way = random.randrange(8)
        if way == 0:
            return {name: one for name, one in value.items() if name != key}
        if way == 1:
            return {(random.choice(ODD_TOKENS) if name == key else name): one for name, one in value.items()}
        if way == 2:
            return {**value, random.choice(ODD_TOKENS): random.choice(ODD_VALUES)}
        if way == 3:
            return {**value, key: value[random.choice(list(value))]}
        return {**value, key: _changed(random, value[key])}
    if isinstance(value, list) and value and random.random() < 0.9:
        place = random.randrange(len(value))
        way = random.randrange(5)
        if way == 0:
            return value[:place] + value[place + 1 :]
        if way == 1:
            return value + [value[place]] * random.choice((1, 2, 100))
        return [*value[:place], _changed(random, value[place]), *value[place + 1 :]]
    deep = value
    for _ in range(random.choice((1, 30, 90, 300))):
        deep = [deep]
    return random.choice((deep, {"": value}, random.choice(ODD_TOKENS), *random.choices(ODD_VALUES, k=5)))
