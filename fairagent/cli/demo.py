"""`fairagent demo`: generate a collection, compare systems on it, and show one search and answer, without a key."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer

from fairagent.cli.options import AsJson, Target, console, echo, target_of
from fairagent.settings import Settings, load_settings


def demo(
    folder: Annotated[Path, typer.Option("--folder", metavar="DIR", help="The folder to write.")] = Path(
        "fairagent-demo"
    ),
    people: Annotated[int, typer.Option("--people", metavar="N", help="How many people, up to 3000.")] = 3000,
    target: Target = None,
    as_json: AsJson = False,
) -> None:
    """Compare engines, simple baselines and the agent on a made-up collection.

    No key is needed. It is the same everywhere: people who never lived, to show how fairagent works.
    Nothing measured on it is a finding about the world.
    """
    from fairagent.cli.index import ensure_indexes
    from fairagent.cli.systems import better_rows, compare, systems_table, verdicts
    from fairagent.collection.demo import write_demo
    from fairagent.evaluate.judging import LEGEND, judged_topics, standard_measures
    from fairagent.report.record import to_json
    from fairagent.report.story import answer_body, sources_table, story
    from fairagent.report.text import TARGETS, targets_text, verdict_text
    from fairagent.search.pipeline import build, open_site

    settings = Settings()
    n = settings.n
    file = write_demo(folder, people=people)
    site = open_site(file, folder / "index", settings)
    if target is not None:
        chosen = load_settings(overrides={"target": target_of(target)}, environ={}).target
        site = replace(site, collection=replace(site.collection, target=chosen))
    collection, indexed = site.collection, ensure_indexes(site)
    rows = list(compare(site))
    if as_json:
        measures = [str(measure) for measure in standard_measures(n)]
        record = {"collection": str(file), "index": str(indexed.folder), "topics": len(collection.topics)}
        echo(to_json({**record, "measures": measures, "systems": [asdict(row) for row in rows]}))
        return

    agent = build(site)
    topics = list(collection.topics.values())
    # Steps that do not help are discarded; the story of one that did says more.
    results = map(agent.search, topics)
    helped = (one for one in results if any(step.why and step.accepted for step in one.trace.steps))
    result = next(helped, None) or agent.search(topics[0])
    out = console()
    out.print(f"{indexed.manifest.documents:,} documents about people who never lived, {len(collection.topics)} topics")
    engine, changes = verdicts(rows)
    judged_by = dict.fromkeys(one.target for one in rows[-1].fairness.values())
    meant = [f"{name} ({TARGETS[name]})" if name in TARGETS else name for name in judged_by]
    out.print(f"\nMeans over the topics, {rows[-1].system} instead of {engine}", style="bold")
    out.print(verdict_text(changes))
    out.print()
    out.print(systems_table(rows, n).text(out.width), highlight=False)
    out.print()
    for row in rows:
        if row.equal:
            out.print(str(row.equal), style="dim")
    for sentence in better_rows(rows, collection):
        out.print(f"{sentence}.")
    out.print(LEGEND, style="dim")
    out.print(
        f"Means over the topics; documents without a label are left out. Judged by {', '.join(meant)}; inside the loop "
        f"the target is {targets_text(result.trace)}: it sees no judgments.",
        style="dim",
    )
    for dimension in collection.groups.dimensions:
        judged = judged_topics(collection, dimension)
        if left_out := [*judged.without_relevant, *judged.without_label]:
            out.print(f"Not judged for {dimension}, since no relevant document has a label: {', '.join(left_out)}")
    out.print(f"\nHow the agent went about {result.query.text!r}\n", style="bold")
    out.print(verdict_text(result.trace.changes))
    out.print(story(result.trace))
    answered = agent.answer(result.query)
    out.print("\nIts answer, in sentences of the first documents, and the groups of these\n", style="bold")
    out.print(answer_body(answered))
    out.print(sources_table(answered))
    out.print("The same and more, for any query:", style="bold")
    for command in ("search", "answer"):
        line = f"fairagent {command} -c {file} --index {indexed.folder} --topic {result.query.id}"
        out.print(line, soft_wrap=True)
