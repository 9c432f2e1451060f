"""The way in: starts the command, and ends it in silence at Ctrl-C.

Whatever is imported is imported inside `main`, so that Ctrl-C during imports ends like any other. Which
commands there are, and how errors look, is `commands/app.py`.
"""

import sys


def main(arguments: list[str] | None = None) -> None:
    """Run the command with these arguments, or with those of the process; then exit."""
    try:
        from polyurn.commands.app import run

        code = run(sys.argv[1:] if arguments is None else arguments)
    except KeyboardInterrupt:
        code = 130  # what shells report for a command ended by Ctrl-C
    sys.exit(code)


if __name__ == "__main__":
    main()
