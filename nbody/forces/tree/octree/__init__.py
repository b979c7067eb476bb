"""From bodies to a tree: their order along a curve, the cells, and the moments of cells."""
