"""The window: canvas and events, the clocks of recordings and live runs, keys and mouse, and where the panels are."""
