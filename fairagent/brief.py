"""What a value says of itself to a person at a prompt: one line of what matters, in the place of all that it holds."""

from importlib import import_module

DRAWN_BY = "fairagent.report.notebook"
"""Where values are drawn for notebooks; loaded when a notebook asks, since it knows all of them."""

LONGEST = 60
"""Characters of a text that is quoted."""


class Brief:
    """A value whose `repr` is its class and `brief`."""

    __slots__ = ()

    @property
    def brief(self) -> str:
        """One line of what matters."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.brief}>"


class Drawn(Brief):
    """One that a notebook draws."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        drawn: str = import_module(DRAWN_BY).html_of(self)
        return drawn


def counted(number: int, noun: str) -> str:
    """A number of things.

    >>> counted(1, "document"), counted(1200, "step")
    ('1 document', '1,200 steps')
    """
    return f"{number:,} {noun}{'s' * (number != 1)}"


def quoted(text: str) -> str:
    r"""A text as it is written in Python, or its beginning.

    >>> quoted("lawyers\x1b"), quoted("a" * 90)[-5:]
    ("'lawyers\\x1b'", "aaa…'")
    """
    return repr(text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…")
