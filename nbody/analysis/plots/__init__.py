"""One file per plot; each ends with its ``PLOT``."""
