"""Text, legend, key help, time line and diagrams, as arrays of pixels that are drawn over the picture."""
