"""What every guarded reader raises."""


class Malformed(ValueError):
    """A file's contents are not what they should be; `line` counts from 1, None means the file as a whole."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line
