"""The side that records: creates the file, adds frames and checkpoints, resumes."""
