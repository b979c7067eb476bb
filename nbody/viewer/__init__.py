"""The viewer: shows bodies in a window, and makes pictures and movies of them without a screen.

==================  ===========================================================================================
 :mod:`.backends`    chooses OpenGL in a window or without a screen, or reports what is missing
 ``sources/``        where the bodies come from (a recording, or a simulation that is running), and the camera
 ``picture/``        what a picture says: look, colours, scales, what the camera follows
 ``display/``        what is written over it: caption, legend, key help, time line, diagrams
 ``gl/``             draws it (OpenGL)
 :mod:`.screenshot`  saves a picture to a file
 ``window/``         the window: canvas, keys and mouse, clocks, panels
 ``movie/``          movies: moments, read-back, encoders
 :mod:`.notebook`    shows a run in a notebook
==================  ===========================================================================================

Each imports only from those above it (a test holds this; ``window`` and ``movie`` not from each other). A
:class:`~.sources.source.Source` gives the :class:`~.sources.frames.ShownMoment` that is due, and a
:class:`~.gl.renderer.PictureRenderer` draws it, for a window, a picture or a movie alike. Importing the package does not
import vispy, which would take 0.2 s.
"""
