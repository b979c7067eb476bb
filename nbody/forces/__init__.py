"""Force engines: gravity of all particles on all particles. :data:`ENGINES` lists them in the order of the course, which
README.md tells.

``direct/`` sums over all pairs, ``tree/`` over cells, ``systems/`` within many small systems, and ``matrix/`` multiplies
matrices. ``layers/`` add fields or leave bodies out, ``transports/`` divide the work over GPUs and ranks. ``reference.py``
is the referee. ``problem.py`` says what may be asked of an engine, ``engine.py`` what one is, ``choose.py`` which one a run
takes. ``api.py`` has the functions for arrays, ``reusable_tree.py`` a tree that is kept.
"""

from nbody.forces.registry import ENGINES as ENGINES
