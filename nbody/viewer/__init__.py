"""The viewer: plays a recorded run in a window, and makes pictures of it without a screen.

===================  ==========================================================================================
 :mod:`.recording`    the particles, speeds and caption of each frame of a trajectory
 :mod:`.camera`       the view: orbit, pan, zoom, and the initial framing
 :mod:`.playback`     the clock that chooses the frame
 :mod:`.controls`     what keys and mouse do to camera and playback
 :mod:`.palette`      the colours of slow and fast particles
 :mod:`.hud`          text, key help and time line, as arrays of pixels
 :mod:`.sprites`      draws particles as additive point sprites into a texture of half floats
 :mod:`.glow`         blurs that light into a halo around bright regions
 :mod:`.tonemap`      maps light to screen colours on a logarithmic scale
 :mod:`.overlay`      draws arrays of pixels over the picture
 :mod:`.renderer`     combines the four modules above into one picture
 :mod:`.backends`     chooses OpenGL in a window or without a screen, or reports what is missing
 :mod:`.window`       opens the window
 :mod:`.canvas`       the window's canvas and its events
 :mod:`.screenshot`   saves a picture to a file
===================  ==========================================================================================

The first six do not use OpenGL. Importing the package does not import vispy, which would take 0.2 s.
"""
