"""The force suite: every engine, precision and N, and the lecture's own run."""
