"""Force engines: gravity of all particles on all particles. :data:`ENGINES` lists them in the order of the lesson.

Read ``reference.py`` (what is computed), then ``gpu_global.py``, ``gpu_tiled.py`` (the lecture), ``gpu_kahan.py``,
``gpu_unrolled.py`` and ``gpu_split.py``. Then each pair once: ``gpu_triangle.py`` (which block computes what),
``gpu_interaction.py`` (the forces of one iteration), ``gpu_pairs.py`` (the kernel) and ``gpu_symmetric.py`` (the launch).

``problem.py`` says what may be asked of an engine, ``engine.py`` what one is, ``choose.py`` which one a run takes, and
``api.py`` has the functions for arrays.
"""

from nbody.forces.registry import ENGINES as ENGINES
