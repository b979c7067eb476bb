"""``python -m nbody`` is the ``nbody`` command."""

import sys

try:
    from nbody.cli import main
except KeyboardInterrupt:  # before there is anything to say
    sys.exit(130)

sys.exit(main())
