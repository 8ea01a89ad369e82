"""`fairagent token`: who may ask a server that is started with `fairagent serve --tokens`."""

from __future__ import annotations

from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Annotated, Literal

import typer

from fairagent.cli.options import AsJson, echo
from fairagent.errors import UsageError
from fairagent.storage.packages import expect_installed

USERS = Path("users.jsonl")

token = typer.Typer(no_args_is_help=True, help="Say who may ask `fairagent serve --tokens FILE`, and for how much.")

Name = Annotated[str, typer.Argument(metavar="NAME", help="The user's name: letters, digits and . _ @ + -")]
UsersFile = Annotated[Path, typer.Option("--file", metavar="FILE", help="The file of users, which is yours alone.")]


@token.command("add")
def add(
    name: Name,
    calls: Annotated[int | None, typer.Option("--calls", min=0, help="Requests to language models.")] = None,
    tokens: Annotated[int | None, typer.Option("--model-tokens", min=0, help="Tokens that models read, write.")] = None,
    dollars: Annotated[float | None, typer.Option("--dollars", min=0, help="What models may cost, in dollars.")] = None,
    per: Annotated[
        Literal["day", "total"], typer.Option("--per", help="What the limits are for: a day (UTC), or all the time.")
    ] = "day",
    expires: Annotated[
        datetime | None,
        typer.Option("--expires", formats=["%Y-%m-%d"], metavar="DATE", help="The last day of the token (UTC)."),
    ] = None,
    file: UsersFile = USERS,
) -> None:
    """Add a user and print the token, which is kept nowhere else: the file has its hash.

    A server that runs lets the user in within a second. What the user's searches and answers may spend on language
    models is limited by --calls, --model-tokens and --dollars; then they are told so, and others are not touched.
    """
    _expect_studio()
    from fairagent.studio.tokens import UserBudget, add_user

    limits = {"calls": calls, "tokens": tokens, "dollars": dollars}
    if dollars is not None and dollars == float("inf"):
        raise UsageError("--dollars: expected a number; leave it out for no limit")
    budget = UserBudget.model_validate({"per": per, **limits}) if any(v is not None for v in limits.values()) else None
    echo(add_user(file, name, budget, expires.date() if expires else None))


@token.command("list")
def list_users(file: UsersFile = USERS, as_json: AsJson = False) -> None:
    """List the users: their limits, what they have spent of these, and how long their tokens hold."""
    _expect_studio()
    from fairagent.report.record import to_json
    from fairagent.studio.serving import book_of
    from fairagent.studio.tokens import read_users

    users = read_users(file)
    with closing(book_of(file)) as book:
        spent = {user.name: book.spent(user) for user in users}
    if as_json:
        rows = [
            {
                **user.model_dump(mode="json", exclude={"sha256"}),
                "spent": {
                    "calls": spent[user.name].calls,
                    "tokens": spent[user.name].tokens,
                    "dollars": spent[user.name].dollars,
                },
            }
            for user in users
        ]
        echo(to_json({"users": rows}))
        return
    for user in users:
        used = spent[user.name]
        limit = str(user.budget) if user.budget else "no limit"
        until = f", until {user.expires}" if user.expires else ""
        took = f"{used.calls:,} calls, {used.tokens:,} tokens, ${used.dollars:.4f}"
        echo(f"{user.name}: {limit}{until}; spent {took}")
    if not users:
        echo(f"{file} has no users.")


@token.command("remove")
def remove(name: Name, file: UsersFile = USERS) -> None:
    """Remove a user: a server that runs refuses the token within a second."""
    _expect_studio()
    from fairagent.studio.tokens import remove_user

    remove_user(file, name)
    echo(f"{name} is removed from {file}.")


def _expect_studio() -> None:
    for package in ("fastapi", "uvicorn"):
        expect_installed(package, "fairagent token")
