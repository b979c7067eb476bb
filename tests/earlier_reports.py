"""Small reports as an earlier 'nbody bench' would have left them."""

import json

MACHINE = {"cpu": "a processor", "cores": 2, "simd": "AVX2", "gpu": None, "version": "0", "started": "2026-01-01"}


def row(**more):
    """A row of forces, or with ``suite`` of another kind of forces."""
    known = {"suite": "forces", "name": "cpu", "device": "a processor", "backend": "cpu", "precision": "float32"}
    return known | {"threads": 1, "particles": 100, "seconds": 1.0} | more


def product(**more):
    """A row of matrix products of which nothing was measured."""
    known = {"suite": "matmul", "name": "k00", "title": "loops", "device": "CPU", "precision": "float32"}
    sizes = dict.fromkeys(("size", "m", "n", "k"), 64)
    speeds = dict.fromkeys(("seconds", "gflops", "percent_of_peak", "percent_of_cublas", "gbytes_per_s", "speedup"))
    return known | sizes | speeds | {"error": None, "error_mean": None, "wrong": False, "note": ""} | more


def written(path, *rows, **more):
    """The file of a report, and with ``more`` of what else is in it."""
    path.write_text(json.dumps({"machine": MACHINE, "rows": list(rows)} | more))
    return path
