"""Pages about societies, prizes, streets and schools: they name an occupation, but are no biography."""

from fairagent.collection.demo.biography import fill
from fairagent.collection.demo.draw import SeededChoices
from fairagent.collection.demo.people import PEOPLE_REGIONS
from fairagent.collection.demo.words import COUNTRIES, SENTENCES, Occupation, titled


def write_page(occupation: Occupation, draw: SeededChoices, taken: set[str]) -> tuple[str, str, str]:
    """A page's title (new to `taken`, and added to it), text and region."""
    while True:
        region = draw.weighted(PEOPLE_REGIONS)
        country = draw.one([country for country in COUNTRIES if country.region == region])
        start = draw.number(1870, 1990)
        slots = {
            "many": occupation.many,
            "Many": titled(occupation.many),
            "field": occupation.field,
            "Field": titled(occupation.field),
            "city": draw.one(country.cities),
            "country": country.name,
            "demonym": country.demonym,
            "patron": draw.one(SENTENCES["patrons"]),
            "start": str(start),
            "finish": str(start + draw.number(5, 28)),
        }
        template, text = draw.one(list(SENTENCES["pages"].items()))
        title = fill(template, slots)
        if title not in taken:
            taken.add(title)
            return title, fill(text, slots), region
