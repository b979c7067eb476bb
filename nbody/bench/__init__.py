"""Benchmarks: how fast, and how exact, this machine is. Three suites; each checks a result before it times it.

================  =============================================================================================
 :mod:`.forces`    every engine, precision and N on the same bodies, and the lecture's run
 :mod:`.roofline`  the GPU's engines beside what the card allows, and other libraries in the same run
 :mod:`.ladder`    the matrix products of :mod:`nbody.linalg`, beside cuBLAS
================  =============================================================================================

Each has a ``suite`` that measures, the ``row`` that it makes, ``tables`` for the terminal and the README, and a
``plot``. How a time is taken is in :mod:`.timing` and :mod:`.queued`; what becomes of the rows in :mod:`.report`,
:mod:`.output`, :mod:`.reading`, :mod:`.readme` and :mod:`.compare`; :mod:`.card` says whether there is a GPU to measure.
"""
