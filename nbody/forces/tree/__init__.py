r"""Gravity by a tree: an octree of the bodies, Cartesian multipole expansions, and an error that the user names.

Begin with ``barnes_hut.py``, which is a whole tree code. The fast ones have the same steps, each with a file per processor:

==================================  ====================================  ==========================================
shared                              CPU                                   GPU
==================================  ====================================  ==========================================
``compute/morton.py``: keys         ``octree/order_cpu.py``: box, sort    ``octree/order_gpu.py``
\                                   ``octree/cells_cpu.py``               ``octree/cells_gpu.py``, ``groups_gpu.py``
``expansions/``: the arithmetic     ``octree/moments_cpu.py``             ``octree/moments_gpu.py``
``criterion.py``: which cells act   ``walk/lists_cpu.py``                 ``walk/target_gpu.py``, ``regions_gpu.py``
\                                   ``walk/sums_cpu.py``                  ``walk/near_gpu.py``
\                                   ``walk/walk_cpu.py``                  ``walk/walk_gpu.py``
``options.py``: what a user says    ``tree_cpu.py``, ``engine_cpu.py``    ``tree_gpu.py``, ``engine_gpu.py``
==================================  ====================================  ==========================================

What only one of them needs: ``kernels_cpu.py`` (compilation, threads) and ``walk/lanes_cpu.py`` (vectors);
``memory_gpu.py``, ``momentum_gpu.py`` and ``partition_gpu.py`` (several GPUs).
"""
