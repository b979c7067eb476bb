"""The few-body schemes for ensembles: S systems of n bodies each, one after the other, that do not act on each other."""
