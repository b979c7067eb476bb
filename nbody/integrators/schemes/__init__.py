"""Schemes move bodies by an engine's forces: tables of kicks and drifts, Hermite, adaptive and block leapfrogs."""
