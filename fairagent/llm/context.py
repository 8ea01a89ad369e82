"""Whether a request fits into a model's context, said before it is sent."""

from fairagent.errors import ModelError
from fairagent.llm.request import ModelRequest, estimate_tokens
from fairagent.settings import ModelSettings


def check_room(settings: ModelSettings, request: ModelRequest) -> None:
    """Raise ModelError where prompt and reply are longer than `settings.context`; without that nothing is known.

    The prompt is estimated at four bytes for each token, and the reply taken at its longest.
    """
    if settings.context is None:
        return
    read = estimate_tokens(*(text for _, text in request.messages))
    written = min(settings.max_tokens, request.max_tokens or settings.max_tokens)
    if read + written > settings.context:
        raise ModelError(
            f"the prompt has about {read:,} tokens and the reply up to {written:,}, but the context of "
            f"{settings.name!r} is {settings.context:,} tokens (model.context in the settings): nothing was sent. Give "
            "it less to read (context.documents, context.tokens), a shorter reply (model.max_tokens), or a longer "
            "context (fairagent model serve --context)"
        )
