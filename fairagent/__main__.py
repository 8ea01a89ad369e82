"""`python -m fairagent`: the program `fairagent`, where its script is not on the path."""

from fairagent.cli import main

if __name__ == "__main__":
    main()
