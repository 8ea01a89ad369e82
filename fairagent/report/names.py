"""How numbers and measures are written on the page."""

from collections.abc import Sequence

from fairagent.measures.parse import label_of, labels_of

MINUS = "\N{MINUS SIGN}"


def short_names(measures: Sequence[str]) -> dict[str, str]:
    """Each measure's definition -> its short name; in full where two would read the same.

    >>> short_names(["nDCG(discount=log2-max2)@20*AWRF(log=e)@20", "AWRF(log=e)@20"])
    {'nDCG(discount=log2-max2)@20*AWRF(log=e)@20': 'nDCG@20·AWRF@20', 'AWRF(log=e)@20': 'AWRF@20'}
    """
    return {measure: label.replace("*", "·") for measure, label in labels_of(measures).items()}


def is_product(measure: str) -> bool:
    """Whether `measure` is the product of two measures."""
    return "*" in label_of(measure)


def is_kind(measure: str, kind: str) -> bool:
    """Whether `measure` is of that name, and no product of two."""
    return not is_product(measure) and label_of(measure).startswith((f"{kind}@", f"{kind}("))


def signed(value: float, digits: int = 3) -> str:
    """A difference with its sign.

    >>> signed(0.1742), signed(-0.0004), signed(-0.25)
    ('+0.174', '0.000', '−0.250')
    """
    text = f"{abs(value):.{digits}f}"
    if not float(text):
        return text
    return f"{'+' if value > 0 else MINUS}{text}"


def p_text(p: float | None) -> str:
    """A p-value, to three decimals.

    >>> p_text(0.0004), p_text(0.0316), p_text(None)
    ('<0.001', '0.032', '–')
    """
    if p is None:
        return "–"
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def p_said(p: float | None) -> str:
    """A p-value in a sentence.

    >>> p_said(0.0004), p_said(0.0316)
    ('p < 0.001', 'p = 0.032')
    """
    text = p_text(p)
    return f"p < {text[1:]}" if text.startswith("<") else f"p = {text}"


def money(cost: float | None) -> str:
    """US dollars; small sums to the hundredth of a cent.

    >>> money(0.0), money(0.00213), money(12.5), money(None)
    ('$0', '$0.0021', '$12.50', 'unknown')
    """
    if cost is None:
        return "unknown"
    return "$0" if cost == 0 else f"${cost:,.4f}" if cost < 1 else f"${cost:,.2f}"


def listed(names: Sequence[str]) -> str:
    """Some names in a sentence.

    >>> listed(["gender", "region", "age"]), listed(["gender"])
    ('gender, region and age', 'gender')
    """
    return " and ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)


def shortened(text: str, longest: int) -> str:
    """`text` in at most `longest` letters.

    >>> shortened("Oceania", 7), shortened("Northern America", 10)
    ('Oceania', 'Northern …')
    """
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
