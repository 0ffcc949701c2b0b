"""The command `words`."""

from harness.errors import UsageError


def run(arguments, environment):
    try:
        with open(arguments.file, encoding="utf-8") as file:
            print(len(file.read().split()))
    except (OSError, ValueError) as error:
        raise UsageError(f"{arguments.file}: {error}") from error
    return 0
