"""The demo collection: short biographies of people who never lived, forty topics, and a skew made on purpose.

EVERYTHING HERE IS MADE UP. A seeded generator puts sentence templates and word lists together into people,
their work and their honors. Only the countries and cities are real; a likeness to a real person or
institution is chance. The collection shows what fairagent does, on a machine with nothing else on it. It is
no evidence about the world, and nothing measured on it is a finding.

Topics are occupations, with titles such as "Lawyers". A document is relevant for a topic if and only if the
person in it has that occupation, in whatever words the text says so; the qrels come from the generator, not
from the text. Each person may belong to a gender (female, male, nonbinary) and to one or two of six world
regions. Where a gender is unknown the text has no pronoun and only initials; where a region is unknown it
names no place.

How the skew is made. The same work can be written about in three ways (`people.Person`): the text opens
with the occupation's name and repeats it ("a Polish lawyer ... younger lawyers learned from him"), has the
name once or in passing, or never uses it ("an advocate who defended tenants against eviction"). A search
for "Lawyers" finds the first kind easily, the second kind late and the third not at all. Texts about men,
and about people of Europe and Northern America, are more often of the first kind; all others more often of
the second and third. Nothing else is made unequal: what people did, what they are known for and how they
were honored is drawn alike for every group. How strong the skew is, and which groups an occupation leans to,
is drawn for each topic. The numbers stand in `people.py`. So the ranking of a plain search is less balanced
than the relevant documents are, for a reason that lies in the wording, as in real collections.

What there is to learn. Pronouns, schools and societies, countries and cities go with groups; the phrases
for a kind of work come back in many texts about it, and some of them are more usual in one region than in
another. Feedback from the labeled documents of an under-exposed group can find both. What makes it hard:
most texts mention or describe somebody else's occupation, some people (booksellers, landlords ...) only
live among lawyers or painters, and pages on societies, prizes, streets and schools name an occupation
without being anybody's biography.
"""

from fairagent.collection.demo.files import write_demo

__all__ = ["write_demo"]
