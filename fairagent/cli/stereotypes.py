"""`fairagent stereotypes`: what a language model or an encoder prefers, by StereoSet, CrowS-Pairs and SEAT."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairagent.cli.options import AsJson, Assignments, SettingsFile, settings_of
from fairagent.cli.terminal import progress_bar
from fairagent.errors import UsageError
from fairagent.measures.weat import SAMPLES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fairagent.stereotypes.items import Item
    from fairagent.stereotypes.scorers import Scored, Scorer

stereotypes = typer.Typer(no_args_is_help=True, help="Measure which stereotypes a model or an encoder prefers.")

ALL = "all"


class Part(StrEnum):
    """Which examples of StereoSet."""

    BOTH = "both"
    INTRASENTENCE = "intrasentence"
    INTERSENTENCE = "intersentence"


Data = Annotated[Path, typer.Option("--data", metavar="FILE", help="The benchmark's file.", show_default=False)]
ModelName = Annotated[
    str,
    typer.Option("--model", metavar="NAME", help="A model's folder or name on this machine, or at its server."),
]
Masked = Annotated[bool, typer.Option("--masked", help="By likelihoods of a local model that fills in masks.")]
Causal = Annotated[bool, typer.Option("--causal", help="By likelihoods of a local model that tells the next token.")]
Server = Annotated[bool, typer.Option("--server", help="By likelihoods of a server that tells them, such as vLLM.")]
Door = Annotated[bool, typer.Option("--door", help="By asking any model at a server to choose: no likelihoods.")]
Device = Annotated[str, typer.Option("--device", metavar="NAME", help="torch's, e.g. cuda. (default: a GPU if any)")]
Batch = Annotated[int, typer.Option("--batch", metavar="N", min=1, help="Inputs that a local model reads at a time.")]
Limit = Annotated[int | None, typer.Option("--limit", metavar="N", min=1, help="Only the first N. (default: all)")]
Seed = Annotated[int, typer.Option("--seed", metavar="N", min=0, help="Of everything random.")]


@stereotypes.command("stereoset")
def stereoset(
    data: Data,
    model: ModelName,
    masked: Masked = False,
    causal: Causal = False,
    server: Server = False,
    door: Door = False,
    part: Annotated[Part, typer.Option("--part", help="Which examples.")] = Part.BOTH,
    limit: Limit = None,
    device: Device = "",
    batch: Batch = 8,
    seed: Seed = 0,
    settings: SettingsFile = None,
    assignments: Assignments = None,
    as_json: AsJson = False,
) -> None:
    """Measure LMS, SS and ICAT on StereoSet: intrasentence, intersentence and overall, by domain."""
    from fairagent.report.record import to_json
    from fairagent.stereotypes.benchmark import NOTES, stereoset_rows
    from fairagent.stereotypes.files import read_stereoset

    examples = [one for one in read_stereoset(data).values() if part.value in (one.part, Part.BOTH)][:limit]
    if not examples:
        raise UsageError(f"{data} has no {part.value} examples")
    kind = _kind(masked, causal, server, door)
    with _scorer(kind, model, device, batch, seed, settings, assignments) as scorer:
        scored = _scored(examples, scorer, "StereoSet")
        way = scorer.way
    rows = stereoset_rows(examples, [one.scores for one in scored])
    if as_json:
        records = [{"part": r.part, "domain": r.domain, **asdict(r.score), "icat": r.score.icat} for r in rows]
        typer.echo(to_json(_record("StereoSet", data, model, way, len(examples), scored, records)))
        return
    table = [["part, domain", "LMS", "SS", "ICAT", "terms", "examples"]]
    for row in rows:
        score = row.score
        numbers = [f"{value:.2f}" for value in (score.lms, score.ss, score.icat)]
        table.append([f"{row.part}, {row.domain}", *numbers, str(score.terms), str(score.count)])
    _print(f"StereoSet by {way}", table, NOTES["stereoset"])


@stereotypes.command("crows-pairs")
def crows_pairs(
    data: Data,
    model: ModelName,
    masked: Masked = False,
    causal: Causal = False,
    server: Server = False,
    door: Door = False,
    limit: Limit = None,
    device: Device = "",
    batch: Batch = 8,
    seed: Seed = 0,
    settings: SettingsFile = None,
    assignments: Assignments = None,
    as_json: AsJson = False,
) -> None:
    """Measure on CrowS-Pairs how often the more stereotyping of two sentences is preferred, by bias type."""
    from fairagent.report.record import to_json
    from fairagent.stereotypes.benchmark import NOTES, crows_pairs_rows, crows_pairs_values
    from fairagent.stereotypes.files import read_crows_pairs

    pairs = list(read_crows_pairs(data).values())[:limit]
    kind = _kind(masked, causal, server, door)
    with _scorer(kind, model, device, batch, seed, settings, assignments) as scorer:
        scored = _scored(pairs, scorer, "CrowS-Pairs")
        way, decimals = scorer.way, scorer.decimals
    rows = crows_pairs_rows(pairs, [one.scores for one in scored], decimals)
    if as_json:
        records = [{"kind": row.kind, **asdict(row.score)} for row in rows]
        typer.echo(to_json(_record("CrowS-Pairs", data, model, way, len(pairs), scored, records)))
        return
    table = [["bias type", *crows_pairs_values(rows[0].score), "neutral", "pairs"]]
    for row in rows:
        numbers = ["-" if v is None else f"{v:.2f}" for v in crows_pairs_values(row.score).values()]
        table.append([row.kind, *numbers, str(row.score.neutral), str(row.score.count)])
    _print(f"CrowS-Pairs by {way}", table, NOTES["crows-pairs"])


@stereotypes.command("seat")
def seat(
    data: Annotated[Path, typer.Option("--data", metavar="FILE", help="The tests: a file or a folder of them.")],
    model: Annotated[str, typer.Option("--model", metavar="NAME", help="The encoder. (default: MiniLM)")] = "",
    tests: Annotated[
        list[str] | None,
        typer.Option(
            "--test", metavar="NAME", help="This test; may be repeated, or `all`. (default: the six of gender)"
        ),
    ] = None,
    samples: Annotated[
        int, typer.Option("--samples", metavar="N", min=2, help="Partitions that a p-value looks at, at most.")
    ] = SAMPLES,
    device: Annotated[str, typer.Option("--device", metavar="NAME", help="torch's, e.g. cuda.")] = "cpu",
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Measure by SEAT (or WEAT) how unlike two sets of texts are in what an encoder puts them close to."""
    from fairagent.report.record import to_json
    from fairagent.retrieve.encoder import BUNDLED, open_encoder
    from fairagent.stereotypes.files import read_seat
    from fairagent.stereotypes.seat import GENDER, mean_effect
    from fairagent.stereotypes.seat import seat as run

    there = read_seat(data)
    names = list(there) if tests and ALL in tests else tests or list(GENDER)
    if missing := [name for name in names if name not in there]:
        raise UsageError(f"{data} has no test {missing[0]!r}; there are: {', '.join(there)}")
    encoder = open_encoder(model or BUNDLED, device)
    with progress_bar() as bar:
        task = bar.add_task("SEAT", total=len(names))
        results = run(
            [there[name] for name in names], encoder, samples, seed, lambda done: bar.update(task, completed=done)
        )
    mean = mean_effect(results)
    if as_json:
        records = [{"test": r.test.name, "categories": r.test.categories, **asdict(r.association)} for r in results]
        found = {"benchmark": "SEAT", "data": str(data), "model": encoder.name, "samples": samples, "seed": seed}
        typer.echo(to_json({**found, "mean_effect": mean, "tests": records}))
        return
    table = [["test", "d", "p", "partitions", "targets", "attributes"]]
    for result in results:
        x, y, a, b = result.test.categories
        found_p = f"{result.association.p:.5f}"
        exact = "all" if result.association.exact else f"{samples:,}"
        table.append([result.test.name, f"{result.association.effect:.4f}", found_p, exact, f"{x}/{y}", f"{a}/{b}"])
    table.append(["mean |d|", f"{mean:.4f}", "", "", "", ""])
    notes = ["d: effect size (0 is fair); p: one-sided, the share of partitions of the targets with as large an effect"]
    _print(f"SEAT, vectors of {encoder.name}", table, notes)


def _kind(masked: bool, causal: bool, server: bool, door: bool) -> str:
    kinds = {"masked": masked, "causal": causal, "server": server, "door": door}
    chosen = [name for name, wanted in kinds.items() if wanted]
    if len(chosen) != 1:
        raise UsageError("say how the model is asked with one of --masked, --causal, --server and --door")
    return chosen[0]


@contextmanager
def _scorer(
    kind: str,
    model: str,
    device: str,
    batch: int,
    seed: int,
    settings: Path | None,
    assignments: Sequence[str] | None,
) -> Iterator[Scorer]:
    """What asks the model, with the connections of a server closed afterwards."""
    from fairagent.stereotypes.local import local_scorer

    if kind in ("masked", "causal"):
        yield local_scorer(kind, model, device, batch=batch)
        return
    chosen = settings_of(settings, assignments, model={"name": model})
    if kind == "server":
        from fairagent.likelihood.endpoint import EndpointModel
        from fairagent.stereotypes.scorers import CausalScorer

        endpoint = EndpointModel(chosen.model)
        try:
            yield CausalScorer(endpoint)
        finally:
            endpoint.close()
        return
    from fairagent.llm.models import Models
    from fairagent.prompts import Prompts
    from fairagent.stereotypes.choice import ChoiceScorer

    models = Models.of(chosen)
    try:
        yield ChoiceScorer(models.open(chosen.model), Prompts(chosen.prompts), seed, model)
    finally:
        models.close()


def _scored(items: Sequence[Item], scorer: Scorer, what: str) -> list[Scored]:
    from fairagent.stereotypes.benchmark import score_items

    with progress_bar() as bar:
        task = bar.add_task(what, total=len(items))
        update: Callable[[int], None] = lambda done: bar.update(task, completed=done)  # noqa: E731
        return score_items(items, scorer, progress=update)


def _record(
    benchmark: str, data: Path, model: str, way: str, items: int, scored: Sequence[Scored], rows: object
) -> dict[str, Any]:
    from fairagent.types import Usage

    spent = sum((one.usage for one in scored), Usage())
    calls = {"calls": spent.calls, "input_tokens": spent.input_tokens, "output_tokens": spent.output_tokens}
    return {
        "benchmark": benchmark,
        "data": str(data),
        "model": model,
        "way": way,
        "items": items,
        **calls,
        "rows": rows,
    }


def _print(title: str, table: Sequence[Sequence[str]], notes: Sequence[str]) -> None:
    from fairagent.evaluate.text_table import aligned

    typer.echo("\n".join([title, "", *aligned(table), "", *notes]))
