"""One run: the loop, its plan, the recorder, guards, progress, signals, and how a run is resumed or made again."""
