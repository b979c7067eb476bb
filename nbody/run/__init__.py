"""One run: the loop, its plan, the recorder, checks, progress and signals, and how to resume or repeat a run."""
