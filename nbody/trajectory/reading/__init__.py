"""The side that reads a recording, during the run or after it."""
