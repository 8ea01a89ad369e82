"""`Usage`: what calls of language models consumed."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Usage:
    """What calls of language models consumed; `cost` is in US dollars, None where a price is unknown.

    `estimated` says that a server did not count its tokens, `notes` what had to be done to get the answers (each
    once). `saved` is what the answers that came from a cache took when they were paid for. `unusable` of the `calls`
    came to nothing: they failed, or gave no reply of the form asked for.
    """

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = 0.0
    seconds: float = 0.0
    estimated: bool = False
    notes: tuple[str, ...] = ()
    saved: Usage | None = None
    unusable: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.calls + other.calls,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            None if self.cost is None or other.cost is None else self.cost + other.cost,
            self.seconds + other.seconds,
            self.estimated or other.estimated,
            tuple(dict.fromkeys(self.notes + other.notes)),
            self.saved + other.saved if self.saved and other.saved else self.saved or other.saved,
            self.unusable + other.unusable,
        )

    @property
    def whole(self) -> Usage:
        """What the answers took, whether they were paid for now or came from a cache."""
        return self if self.saved is None else replace(self, saved=None) + self.saved
