"""Forces within many small systems that do not act on each other: the engines of ensembles, on the CPU and on a GPU.

The N bodies are S systems of n bodies each, one after the other.
"""
