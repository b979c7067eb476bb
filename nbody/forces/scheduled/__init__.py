"""An experiment: ``gpu-symmetric`` with its machine code put into another order."""
