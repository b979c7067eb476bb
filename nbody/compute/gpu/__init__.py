"""Devices: what they have, launches, graphs, several of one host."""
