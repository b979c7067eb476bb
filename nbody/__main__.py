"""``python -m nbody`` and the installed script ``nbody``: how the program begins and ends.

Ctrl-C ends it with 130 and no traceback, from the first import on, however often it is pressed.
"""

import signal
import sys


def main() -> int:
    """Run the command line and return its exit code."""
    code = 130
    try:
        try:
            from nbody.cli import main as command

            code = command()
        except KeyboardInterrupt:  # among the imports, or a second one while the first was being answered
            pass
        if code == 130:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # nothing is left that another one could end
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    return code


if __name__ == "__main__":
    sys.exit(main())
