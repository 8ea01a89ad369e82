"""The settings of language models: which one, where it runs, what it costs, and what all calls together may use."""

from __future__ import annotations

from pydantic import Field

from fairagent.settings.section import Section


class SelfDebiasSettings(Section):
    """Self-Debias (Schick et al., 2021): what a model rather says when prompted to be biased becomes less likely."""

    kinds: tuple[str, ...] = Field(("gender", "race/color", "religion"), min_length=1)
    """The kinds of bias that it is prompted for, each in a sentence of its own."""
    decay: float = Field(50.0, ge=0)
    """How fast probabilities fall; 0 changes nothing."""
    least: float = Field(0.01, gt=0, le=1)
    """The least share of itself that a probability keeps."""


class ModelSettings(Section):
    """The language model for all parts that call one; its key comes from OPENAI_API_KEY and is not a setting."""

    name: str = ""
    """The model's name at its server."""
    base_url: str = ""
    """The server's address, e.g. http://localhost:8000/v1; empty: OPENAI_BASE_URL, or OpenAI if that is not set."""
    temperature: float = Field(0.3, ge=0, le=2)
    """The sampling temperature; the default is that of FAIR-QR."""
    max_tokens: int = Field(400, ge=1)
    """The longest reply, in tokens."""
    context: int | None = Field(None, ge=1)
    """The longest prompt and reply together that the server takes, in tokens; a longer one is not sent."""
    timeout: float = Field(60.0, gt=0)
    """The longest time of one attempt, from connecting to the last byte, in seconds; of an answer that is streamed, the
    longest wait for more of it."""
    deadline: float = Field(300.0, gt=0)
    """The longest time of a request with all its attempts and waits, in seconds."""
    log_prompts: bool = False
    """Whether the debug logs of the package openai may contain prompts."""
    attempts: int = Field(5, ge=1)
    """The largest number of attempts of a request, the first included."""


class Price(Section):
    """The price of a language model, in US dollars per million tokens."""

    input: float = Field(ge=0)
    """US dollars per million tokens of prompts."""
    output: float = Field(ge=0)
    """US dollars per million tokens of replies."""

    def dollars(self, input_tokens: int, output_tokens: int) -> float:
        """The cost of so many tokens.

        >>> Price(input=2, output=10).dollars(1000, 100)
        0.003
        """
        return (input_tokens * self.input + output_tokens * self.output) / 1e6


def cost_of(price: Price | None, input_tokens: int, output_tokens: int) -> float | None:
    """US dollars for so many tokens; None where the price is not known, but nothing costs nothing.

    >>> cost_of(None, 0, 0), cost_of(None, 5, 0), cost_of(Price(input=2, output=10), 1000, 100)
    (0.0, None, 0.003)
    """
    if not input_tokens and not output_tokens:
        return 0.0
    return price.dollars(input_tokens, output_tokens) if price else None


class BudgetSettings(Section):
    """Limits on all model calls of a run together; what is not set is not limited."""

    calls: int | None = Field(None, ge=0)
    """The number of requests sent, failed ones included."""
    tokens: int | None = Field(None, ge=0)
    """The number of tokens in prompts and replies."""
    dollars: float | None = Field(None, ge=0)
    """The cost in US dollars; the model's price has to be known."""
    seconds: float | None = Field(None, gt=0)
    """The time from the start of the run, in seconds; a call that has started is not cut off."""
