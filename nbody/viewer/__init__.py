"""The viewer: shows bodies in a window, and makes pictures of them without a screen.

==================  ===========================================================================================
 ``sources/``        where the bodies come from: a recording, or a simulation that is running
 ``picture/``        the picture of one moment: camera, colours, sprites, glow, tone map (OpenGL)
 ``display/``        what is written over it: caption, legend, key help, time line, diagrams
 ``window/``         the window: canvas, keys and mouse, clocks, panels
 ``movie/``          movies: moments, read-back, encoders
 :mod:`.notebook`    shows a run in a notebook
 :mod:`.screenshot`  saves a picture to a file
 :mod:`.backends`    chooses OpenGL in a window or without a screen, or reports what is missing
==================  ===========================================================================================

A :class:`~.sources.source.Source` gives the :class:`~.sources.frames.ShownMoment` that is due, and a
:class:`~.picture.renderer.PictureRenderer` draws it, for a window, a picture or a movie alike. Importing the package does
not import vispy, which would take 0.2 s.
"""
