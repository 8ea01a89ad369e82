"""`fairagent audit`: what groups got of the attention in a log of requests, as one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fairagent.cli import options
from fairagent.cli.options import AsJson, console, echo, print_page, status
from fairagent.errors import UsageError

PAGE = Path("audit.html")


def audit(
    log: Annotated[
        Path,
        typer.Argument(
            metavar="LOG",
            help="An account of rerank: amortized, JSON lines, a CSV or TSV, or a run.",
            show_default=False,
        ),
    ],
    to: Annotated[Path, typer.Option("--to", metavar="FILE", help="Where the page goes.")] = PAGE,
    collection: options.CollectionFile = None,
    index: options.IndexFolder = None,
    settings: options.SettingsFile = None,
    assignments: options.Assignments = None,
    as_json: AsJson = False,
) -> None:
    """Audit a log of requests, of fairagent or any other engine: one page, as a person or an authority may file it.

    A table has columns for query and document, and may have rank, time and request; JSON lines have `query` and `ids`,
    or `hits`, and may have `time`. The collection says which documents are of which groups, and the target what these
    are due: its population, else its own shares, unless --set target=... says otherwise. An account holds shares and
    dues itself, and needs no collection. Ids that the collection lacks are counted; none there is an error.
    """
    from fairagent.collection import load_collection
    from fairagent.evaluate.audit import audit_account, audit_requests
    from fairagent.evaluate.request_log import is_account, read_log
    from fairagent.report.audit import audit_record, audit_text, write_audit
    from fairagent.report.record import to_json
    from fairagent.retrieve.known import indexed_documents
    from fairagent.search.account import open_account
    from fairagent.search.pipeline import index_folder
    from fairagent.settings import load_settings
    from fairagent.storage.threads import progress

    with status(), progress(f"auditing {log}"):
        if is_account(log):
            audit = audit_account(open_account(log))
        else:
            given = {"collection": collection and str(collection), "index": index and str(index)}
            overrides = options.overrides(assignments, **given)
            chosen = load_settings(options.settings_file(settings), overrides)
            if not chosen.collection:
                raise UsageError("whose documents are these? Name the collection's settings file (--collection FILE)")
            loaded = load_collection(Path(chosen.collection), chosen.index)
            known = indexed_documents(loaded, index_folder(loaded, chosen))
            audit = audit_requests(read_log(log), loaded, chosen, known, log)
        write_audit(audit, to)
    if as_json:
        echo(to_json(audit_record(audit)))
        return
    print_page(audit_text(audit))
    console().print(f"the page: {to}", soft_wrap=True)
