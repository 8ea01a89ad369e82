"""`fairagent demo`: generate a collection, compare systems on it, and show one search and answer, without a key."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import yaml

from fairagent.cli import options
from fairagent.cli.options import console, option
from fairagent.settings import Settings, load_settings
from fairagent.storage.files import write_whole


def demo(
    folder: Annotated[Path, option("--folder", "The folder to write.", "DIR")] = Path("fairagent-demo"),
    people: Annotated[int, option("--people", "How many people, up to 3000.", "N")] = 3000,
    target: options.Target = None,
    as_json: options.AsJson = False,
) -> None:
    """Compare engines, simple baselines and the agent on a made-up collection.

    No key is needed. It is the same everywhere: people who never lived, to show how fairagent works.
    Nothing measured on it is a finding about the world. The comparison is an experiment like any other: its file is
    experiment.yaml, its tables and its page are in `run`.
    """
    from fairagent.cli.evaluate import carried_out, print_results
    from fairagent.cli.index import ensure_index
    from fairagent.collection.demo import write_demo
    from fairagent.evaluate.check import check_experiment
    from fairagent.evaluate.findings import better_systems, changes_by
    from fairagent.evaluate.judging import FUSED, LEGEND, SYSTEMS
    from fairagent.report.story import answer_body, sources_table, story
    from fairagent.report.text import verdict_text
    from fairagent.search.pipeline import build, open_site

    file = write_demo(folder, people=people)
    site = open_site(file, folder / "index", Settings())
    chosen = {} if target is None else {"target": options.target_of(target)}
    if chosen:
        target_set = load_settings(overrides=chosen, environ={}).target
        site = replace(site, collection=replace(site.collection, target=target_set))
    ensure_index(site)
    agent = build(site)
    fused = [FUSED] if agent.settings.engine.inner else []
    systems = {name: of for name, of in SYSTEMS.items() if name in fused or name != FUSED}
    experiment: dict[str, Any] = {
        "name": "demo",
        "collection": file.name,
        "baseline": (fused or list(systems))[0],
        "settings": {"index": str((folder / "index").resolve()), **chosen},
        "systems": systems,
        **chosen,
    }
    write_whole(folder / "experiment.yaml", yaml.safe_dump(experiment, sort_keys=False))
    run, _ = carried_out(check_experiment(folder / "experiment.yaml"), folder / "run", new=True)
    out = console()
    if not as_json:
        # The agent is the last system.
        out.print(f"Means over the topics, {run.systems[-1]} instead of {run.baseline}", style="bold")
        out.print(verdict_text(changes_by(run, run.systems[-1])))
        for sentence in better_systems(run, run.systems[-1], site.collection):
            out.print(sentence)
        out.print()
    print_results(run, as_json)
    if as_json:
        return
    out.print(LEGEND, style="dim")
    topics = list(site.collection.topics.values())
    # Steps that do not help are discarded; the story of one that did says more.
    helped = (one for one in map(agent.search, topics) if any(step.why and step.accepted for step in one.trace.steps))
    result = next(helped, None) or agent.search(topics[0])
    out.print(f"\nHow the agent went about {result.query.text!r}\n", style="bold")
    out.print(verdict_text(result.trace.changes))
    out.print(story(result.trace))
    answered = agent.answer(result.query)
    out.print("\nIts answer, in sentences of the first documents, and the groups of these\n", style="bold")
    out.print(answer_body(answered))
    out.print(sources_table(answered))
    out.print(f"All tables and a page to look at: {folder / 'run' / 'report.html'}\nThe same and more, for any query:")
    for command in ("search", "answer"):
        line = f"fairagent {command} -c {file} --index {folder / 'index'} --topic {result.query.id}"
        out.print(line, soft_wrap=True)
