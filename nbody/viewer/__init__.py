"""The viewer: plays a recorded run in a window, and makes pictures of it without a screen.

===================  ==========================================================================================
 :mod:`.recording`    what is shown: particles, speeds and captions of each frame of a trajectory
 :mod:`.camera`       from where: orbit, pan, zoom, and the framing of a run's first frame
 :mod:`.playback`     when: the clock that says which frame
 :mod:`.controls`     what keys and mouse do to camera and playback
 :mod:`.palette`      the colours of slow and fast
 :mod:`.hud`          text, key help and time line, as arrays of pixels
 :mod:`.sprites`      particles as light: additive point sprites into a texture of half floats
 :mod:`.glow`         the halo around what is bright
 :mod:`.tonemap`      that light as colours of a screen, through a logarithm
 :mod:`.overlay`      arrays of pixels over the picture
 :mod:`.renderer`     the four above in order: one whole picture
 :mod:`.backends`     OpenGL in a window or without a screen, or one line that says what is missing
 :mod:`.window`       the window
 :mod:`.screenshot`   the picture in a file
===================  ==========================================================================================

The first six know nothing of OpenGL. Importing the package imports no vispy (0.2 s).
"""
