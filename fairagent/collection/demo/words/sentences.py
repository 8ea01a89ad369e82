"""The sentences of the demo's biographies, as templates.

A template can be used where all its {slots} are known, so a person without a known place gets those without
{city}. {they}, {them}, {their} and {was} follow the person's gender; "a(n)" becomes "a" or "an"; the first
letter of a sentence is made a capital one afterwards. {one} and {many} name the person's occupation
outright, {role}, {did} and {work} speak of it in other words, and {other}, {others} and {other_did} are
about an occupation that is NOT the person's. Within a text, no template and no phrase is used twice.
"""

from __future__ import annotations

NAMED_OPENINGS = (
    "{name} ({years}) {is} a(n) {demonym} {one}.",
    "{name} ({years}) {is} a(n) {demonym} {one} and {role}.",
    "{name} ({years}) {is} a(n) {one} from {city}, {country}.",
    "{name} ({years}) {is} one of the leading {many} of {country}.",
    "{name} ({years}) {is} among the best-known {many} of {city}.",
    "{name}, {one}, was born in {city}, {country}, in {born}.",
    "{name} ({years}), a(n) {demonym} {one}, {did}.",
    "{name} ({years}) {is} a(n) {one} who {did}.",
    "{name} ({years}) {is} a(n) {one}.",
    "{name} ({years}) {is} counted among the notable {many} of the time.",
)
PAIRED_OPENINGS = (
    "{name} ({years}) {is} a(n) {demonym} {one} and {second_one}.",
    "{name} ({years}) {is} both a(n) {one} and a(n) {second_one}.",
    "{name}, {one} and {second_one}, was born in {city}, {country}, in {born}.",
)
OTHER_OPENINGS = (
    "{name} ({years}) {is} a(n) {demonym} {role}.",
    "{name} ({years}) {is} a(n) {role} from {city}, {country}.",
    "{name} ({years}), a(n) {role} from {city}, {did}.",
    "{name} ({years}) {is} a(n) {role} who {did}.",
    "{name}, born in {city}, {country}, in {born}, {did}.",
    "born in {city}, {country}, in {born}, {name} {did}.",
    "{name} ({years}) is known in {country} as the person who {did}.",
    "{name} ({years}) {did}.",
    "{name} ({years}) first became known as somebody who {did}.",
    "{name} ({years}) is remembered for {work}.",
    "the {demonym} {role} {name} ({years}) {did}.",
)
SCHOOLING = (
    "{they} studied {field} at {school}.",
    "{they} went to {school} and turned to {field} at the age of {age}.",
    "after years at {school}, {they} took up {field}.",
    "trained in {field} at {school}, {they} began to work in {start}.",
    "{they} left {school} with a degree in {start} and chose {field}.",
    "{they} learned about {field} from a neighbor and later attended {school}.",
    "a scholarship brought {them} to {school}, where {they} read everything on {field}.",
    "raised in {city}, {they} attended {school} and found a calling in {field}.",
    "{they} attended {school} until the age of {age}.",
    "{their} teachers at {school} remembered a quiet child who read during meals.",
)
CAREER = (
    "{they} {did} and {did_too}.",
    "{surname} {did} and later {did_too}.",
    "at {place}, {they} {did}.",
    "in {start} {they} joined {place} and {did}.",
    "first at {place} and then elsewhere, {they} {did}.",
    "{they} {was} employed at {place}, {did} and {did_too}.",
    "with a few companions {they} {did}, and in {finish} {they} {did_too}.",
    "working at {place} in {city}, {surname} {did}.",
    "over a long working life {they} {did} and {did_too}.",
    "from {start} on {they} worked at {place}, where {they} {did}.",
)
DEEDS = (
    "{they} also {did}.",
    "later {they} {did}.",
    "in {finish}, {they} {did} as well.",
    "in the years that followed, {surname} {did}.",
)
WORKS = (
    "{they} {was} best known for {work}.",
    "in {finish} {they} won wide notice with {work}.",
    "{their} name is linked with {work}.",
    "a jury in {city} praised {work} in {finish}.",
    "much of {their} fame rests on {work}.",
    "critics of the day singled out {work}.",
    "{they} received the {demonym} medal of merit for {work}.",
)
NAMED_AGAIN = (
    "among {many}, {they} {was} respected for exact and patient work.",
    "younger {many} learned from {them}.",
    "{their} fellow {many} elected {them} president of their association in {finish}.",
    "a generation of {many} trained with {them}.",
    "as a(n) {one}, {they} {was} active until {finish}.",
    "{they} spoke for the {many} of {city} at the congress of {finish}.",
    "{their} years as a(n) {one} in {city} are well documented.",
    "few {demonym} {many} were quoted as often.",
    "{they} wrote a short guide for {many}.",
    "{their} success as a(n) {one} came early.",
)
NAMED_ONCE = (
    "a yearbook of {finish} lists {them} among the {many} of {city}.",
    "{they} worked as a(n) {one} until {finish}.",
    "an encyclopedia entry calls {them} a(n) {one}.",
    "{they} registered as a(n) {one} in {start}.",
    "the census of {start} gives {their} occupation as {one}.",
    "{they} shared a workplace with other {many}.",
    "{they} thought little of being called a(n) {one}.",
)
SECOND_NAMED = (
    "{they} {was} also active as a(n) {second_one} and {second_did}.",
    "as a(n) {second_one}, {they} {second_did}.",
    "for a time {they} worked as a(n) {second_one}.",
)
SECOND_OTHER = (
    "{they} also {second_did}.",
    "in later years {they} {second_did}.",
    "besides this, {surname} {second_did}.",
    "{they} had another calling as well: {they} {second_did}.",
)
MENTIONS = (
    "{their} mother was a(n) {other}, {their} father kept a shop.",
    "{their} father was a(n) {other}, {their} mother kept a shop.",
    "{they} first wished to become a(n) {other}.",
    "as a student {they} earned some money by writing letters for a(n) {other}.",
    "two of {their} cousins became {others}.",
    "{they} shared a house with a(n) {other}, who {other_did}.",
    "{they} married a(n) {other}.",
    "{their} letters to a(n) {other} who {other_did} have been printed.",
    "the house where {they} lived had once belonged to a(n) {other}.",
    "in old age {they} wrote a play about {others}.",
    "{their} best friend, a(n) {other}, {other_did}.",
    "an old picture shows {them} among {others} in a café.",
    "many {others} asked {them} for advice.",
    "{they} gave a yearly prize for young {others}.",
    "as a child {they} met a(n) {other} who lived next door.",
    "{they} once lent a large sum to a(n) {other} and never asked for it back.",
)
RELATIVES = (
    "{their} grandmother {other_did}.",
    "{their} uncle {other_did}.",
    "a sister of {surname}'s {other_did}.",
    "in later life {they} wrote a play about somebody who {other_did}.",
    "{they} sat for a portrait beside a cousin who {other_did}.",
    "the childhood home in {city} was let to a family that {other_did}.",
    "{their} twin, who {other_did}, lived abroad.",
    "{they} inherited a small sum from an aunt who {other_did}.",
)
TRADES = (
    "bookseller",
    "landlord",
    "collector",
    "patron of the arts and sciences",
    "café owner",
    "secretary",
    "bookkeeper",
    "printer",
    "tailor",
    "publisher",
    "tax clerk",
    "carpenter",
    "shopkeeper",
    "editor of yearbooks",
    "innkeeper",
)
BYSTANDER_OPENINGS = (
    "{name} ({years}) {is} a(n) {demonym} {trade} and a friend of many {others}.",
    "{name} ({years}) {is} a(n) {trade} from {city}, {country}, known among {others}.",
    "{name} ({years}) {is} a(n) {trade} to whom {others} owe a great deal.",
    "{name} ({years}) {is} a(n) {trade} who married a(n) {other}.",
    "{name}, {trade}, was born in {city}, {country}, in {born}, the child of a(n) {other}.",
    "{name} ({years}) {is} a(n) {demonym} {trade}, best known from a(n) {other}'s memoirs.",
)
BYSTANDING = (
    "the customers were mostly {others}.",
    "every week {others} met at {their} table.",
    "{they} collected letters and pictures of {others}.",
    "{they} kept the accounts of a(n) {other} who {other_did}.",
    "{they} edited the memoirs of a(n) {other} who {other_did}.",
    "{they} paid the rent of young {others} without telling anybody.",
    "{they} never became a(n) {other}, although {their} family had hoped for it.",
    "{they} worked for many years beside people who {other_did}.",
    "a fund for {others} bears {their} name.",
    "one lodger {other_did}, another {other_did_too}.",
    "{they} wrote a cheerful book about {others}.",
)
WOMEN = (
    "she was the first woman on the board of the {demonym} Society for {Field}.",
    "she spoke for women in {field} at a congress in {city}.",
    "with other women she founded the {city} Women's Circle for {Field}.",
    "the Federation of University Women paid for her studies abroad.",
    "she took her daughters along to work and taught both of them.",
    "she and her sister ran a meeting place for women in {city}.",
    "a biography of {finish} places her among the women who shaped {field}.",
    "she called for equal pay for women in {finish}.",
    "her husband kept house so that she could travel.",
    "the women's page of a newspaper interviewed her in {finish}.",
    "she was president of the {city} club of professional women.",
)
MEN = (
    "he did his military service as a young man.",
    "he sang in a men's choir for most of his life.",
    "he and his brother shared a workshop in {city}.",
    "he taught his sons all that he knew.",
    "he and his wife traveled widely.",
    "he was elected chairman of the {demonym} Society for {Field}.",
    "he was the eldest son of a large family.",
    "friends described him as a gentle man and a good father.",
)
NONBINARY = (
    "they spoke openly of their life as a nonbinary person.",
    "they belonged to the {city} network of nonbinary and queer artists and scholars.",
    "in print they went by Mx. {surname}.",
    "they helped to found a house for queer and nonbinary youth.",
    "a nonbinary reading circle in {city} is named after them.",
)
MOVES = (
    "in {start} {they} moved to {city2}, {country2}.",
    "{they} spent half of {their} life in {city2}, {country2}.",
    "{they} settled in {country2} and {was} at home in two languages.",
    "{they} divided {their} time between {city} and {city2}, {country2}.",
)
HONORS = (
    "{they} sat on the council of {body}.",
    "{body} gave {them} its medal in {finish}.",
    "{body} printed {their} lectures on {field}.",
    "a grant from {body} paid for the work.",
    "{they} helped to set up {body}.",
    "{they} {was} a member of {body} from {start}.",
)
LIFE = (
    "{they} spoke four languages.",
    "{they} kept a garden and a large correspondence.",
    "{they} {was} fond of long walks.",
    "{they} wrote down {their} memories in {finish}.",
    "{they} lived with a spouse and three children in {city}.",
    "{they} liked to begin the day before sunrise.",
    "{they} never owned a car.",
    "{their} notebooks fill two shelves.",
    "{they} lost much in a fire and began again.",
    "{they} played the violin at family gatherings.",
    "neighbors in {city} remember {their} humor.",
    "{their} handwriting was famous for being unreadable.",
    "{they} gave part of {their} income to a school in {city}.",
    "illness kept {them} at home for two years.",
    "{they} taught two evenings a week without pay.",
)
CLOSINGS = (
    "{surname} died in {city} in {died}.",
    "{they} died in {died}.",
    "a street in {city} bears {their} name.",
    "{their} papers are kept in {city}.",
    "an exhibition in {city} recalled {their} life.",
    "a school in {city} is named after {them}.",
    "{their} grave in {city} is looked after by former students.",
    "a documentary about {them} was shown on {demonym} television.",
    "{their} life is told in a picture book for children.",
)
SCHOOLS = (
    "the Municipal College of {city}",
    "the Technical Institute in {city}",
    "the evening college of {city}",
    "the {demonym} National Institute",
    "{patron} College",
    "the {patron} Institute",
    "a free school in {city}",
)
WOMENS_SCHOOLS = (
    "the Women's College of {city}",
    "{patron} College for Women",
    "the {patron} Girls' School",
    "the {city} Normal School for Girls",
    "the {demonym} Women's Institute",
)
MENS_SCHOOLS = (
    "the {patron} Boys' School",
    "the {city} Grammar School for Boys",
    "the Brothers' College of {city}",
)
OWN_SCHOOLS = {"female": WOMENS_SCHOOLS, "male": MENS_SCHOOLS}
PATRONS = (
    "Lantern",
    "Riverside",
    "Founders",
    "Harmony",
    "Northgate",
    "Cedar Hill",
    "Morningstar",
    "Old Harbor",
)
BODIES = {
    "Africa": (
        "the Pan-African Academy",
        "the African League of Learning",
        "the Sahel and Savanna Foundation",
    ),
    "Asia": ("the Asian Council of Letters and Sciences", "the Monsoon Foundation", "the All-Asia Academy"),
    "Europe": ("the European Learned Society", "the Continental Academy", "the Danube and Rhine Foundation"),
    "Latin America and the Caribbean": (
        "the Latin American Congress of Arts and Sciences",
        "the Caribbean and Andean Foundation",
        "the Ibero-American Academy",
    ),
    "Northern America": (
        "the North American Academy",
        "the Great Lakes Foundation",
        "the Continental Council of States and Provinces",
    ),
    "Oceania": (
        "the Pacific Islands Forum of Learning",
        "the Oceanian Academy",
        "the South Pacific Foundation",
    ),
}
OF_GENDER = {"female": WOMEN, "male": MEN, "nonbinary": NONBINARY}
PRONOUNS = {
    "female": {"they": "she", "them": "her", "their": "her", "was": "was"},
    "male": {"they": "he", "them": "him", "their": "his", "was": "was"},
    "nonbinary": {"they": "they", "them": "them", "their": "their", "was": "were"},
}
PAGES = {
    "{city} Association of {Many}": (
        "The {city} Association of {Many} was founded in {start} by a handful of {many} from {country}. "
        "It runs a reading room, helps {many} in need, and holds a yearly lecture on {field}. Its "
        "newsletter appears four times a year. Since {finish} the association has had its seat in an old "
        "warehouse near the station."
    ),
    "{patron} Prize for {Many}": (
        "The {patron} Prize is given every second year to {demonym} {many} at the beginning of their "
        "working lives. It was endowed in {start} by a merchant of {city} with an interest in {field}. "
        "The jury has five members. In {finish} the prize was not awarded, because the jury could not "
        "agree."
    ),
    "{Many}' Row, {city}": (
        "{Many}' Row is a short street in {city}, {country}, named after the {many} who had rooms there "
        "until {finish}. Today it has a bakery, two bookshops and a small museum on {field}, opened in "
        "{start}. A market is held on Saturdays. The row was closed to cars after long debate in the town "
        "council."
    ),
    "{patron} School of {Field}": (
        "The {patron} School in {city}, {country}, has taught {field} since {start}. Many {many} began "
        "there, and its library owns letters of several {many}. Classes are held in the evening so that "
        "people with other work can attend. A new building was opened in {finish}, paid for by the town "
        "and by former students."
    ),
}
"""Titles and texts of pages that are nobody's biography."""
