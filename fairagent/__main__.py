"""`python -m fairagent`: the program `fairagent`, where its script is not on the path."""


def main() -> None:
    """See `fairagent.cli.app.main`; a worker process, which imports this module, has no use for the commands."""
    from fairagent.cli.app import main

    main()


if __name__ == "__main__":
    main()
