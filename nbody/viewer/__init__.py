"""The viewer: shows bodies in a window, and makes pictures and movies of them without a screen; see README.md.

Importing the package does not import vispy, which would take 0.2 s.
"""
