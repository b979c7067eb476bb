"""From a tree to forces: which cell acts on which, and the sums."""
