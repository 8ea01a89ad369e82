"""`fairagent audit`: what groups got of the attention in a log of requests, against what they were due."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fairagent.cli import options
from fairagent.cli.options import AsJson, echo, print_page, status
from fairagent.errors import UsageError

if TYPE_CHECKING:
    from fairagent.evaluate.audit import Audit


def audit(
    log: Annotated[
        Path,
        typer.Argument(
            metavar="LOG", help="JSON lines, a CSV or TSV, or an account of rerank: amortized.", show_default=False
        ),
    ],
    collection: options.CollectionFile = None,
    index: options.IndexFolder = None,
    settings: options.SettingsFile = None,
    target: options.Target = None,
    assignments: options.Assignments = None,
    as_json: AsJson = False,
) -> None:
    """Audit a log of requests, of fairagent or any other engine: each group's share of the attention, and its due.

    A table has columns for query and document, and may have rank, time and request; JSON lines have `query` and `ids`,
    or `hits`, and may have `time`. The collection says which documents are of which groups, and the target what these
    are due: --target, else the collection's own where that holds for every query, else its population, else its own
    shares. An account holds shares and dues itself, and needs no collection. Ids that the collection lacks are counted;
    none there is an error.
    """
    from fairagent.collection import load_collection
    from fairagent.evaluate.audit import audit_account, audit_requests, is_account, read_log
    from fairagent.report.record import to_json
    from fairagent.retrieve.manifest import indexed_documents
    from fairagent.search.account import Account
    from fairagent.search.live import index_folder
    from fairagent.storage.threads import progress

    with status(), progress(f"auditing {log}"):
        if is_account(log):
            found = audit_account(Account(log))
        else:
            chosen = options.settings_of(
                settings, assignments, collection=collection, index=index, target=options.target_of(target)
            )
            if not chosen.collection:
                raise UsageError("whose documents are these? Name the collection's settings file (--collection FILE)")
            loaded = load_collection(Path(chosen.collection), chosen.index)
            known = indexed_documents(loaded, index_folder(loaded, chosen))
            found = audit_requests(read_log(log), loaded, chosen, known, log)
    if as_json:
        echo(to_json(asdict(found)))
    else:
        print_page("\n".join(audit_lines(found)))


def audit_lines(found: Audit) -> Iterator[str]:
    """What a terminal shows: a table of each dimension's groups."""
    from fairagent.types.change import percent
    from fairagent.types.common import counted

    when = f", from {found.begins} to {found.ends}" if found.begins else ""
    first = f"the first {found.n} documents of each" if found.n else "all documents shown"
    yield f"{found.log}: {counted(found.requests, 'request')}{when}; {first}, collection {found.collection}"
    for one in found.dimensions:
        yield f"\n{one.name}; due: {one.target}; without a label {percent(one.unlabeled)} of the attention"
        width = max(map(len, ("group", *(group.label for group in one.groups))))
        yield f"  {'group':{width}}  share  95 % interval     due  whatever the missing labels are"
        for group in one.groups:
            ends = "" if group.low is None else f"{group.low:.3f} to {group.high:.3f}"
            bounds = f"{group.least:.3f} to {group.most:.3f}"
            yield f"  {group.label:{width}}  {group.share:.3f}  {ends:14}  {group.due:.3f}  {bounds}"
    yield ""
    yield (
        f"Shares of all attention (discount {found.discount}); intervals resample queries (bootstrap). They say what "
        "was shown, and not who clicked, nor whether what was shown was right."
    )
    yield from (f"note: {note}" for note in found.notes)
