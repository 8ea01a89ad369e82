"""Names that become files or folders."""

LONGEST = 200
"""Bytes of UTF-8: file systems take 255, and what is written beside adds to it."""


def plain_name(name: str) -> str:
    """`name` itself; ValueError where it would lead to another folder, or is no name that a file can have.

    >>> plain_name("TREC Fair 2022")
    'TREC Fair 2022'
    """
    if name in (".", "..") or any(sign in name for sign in "/\\"):
        raise ValueError("a folder is named after it: it may not be . or .., or hold / or \\")
    if not name.isprintable() or name != name.strip():
        raise ValueError("a folder is named after it: no control characters, and no space at its ends")
    if len(name.encode("utf-8", "surrogatepass")) > LONGEST:
        raise ValueError(f"a folder is named after it: at most {LONGEST} bytes")
    return name
