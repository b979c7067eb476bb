"""``python -m nbody`` is the ``nbody`` command."""

import sys

from nbody.cli import main

sys.exit(main())
