"""The laboratory of the two courses, ``nbody/linalg/README.md`` and ``nbody/forces/README.md``, whose kernels stay there.

``figures``
    Their pictures, drawn by ``python -m nbody.lessons``.
``ladder``
    ``nbody bench matmul``: the rungs of the matrix course, measured beside cuBLAS, or explained.
``roofline``
    ``nbody bench roofline``: the kernels of the N-body course beside the bounds of the card.
"""
