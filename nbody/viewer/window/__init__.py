"""The window: canvas and events, the clock of the playback, and what keys and mouse do."""
