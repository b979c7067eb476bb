"""The picture of one moment, drawn by OpenGL.

=======================  ==========================================================================================
 :mod:`.look`            what a user chooses about the picture; :mod:`.choices` lists the names, with one file each for
                         ``background``, ``sizes``, ``palette`` (colour maps) and ``colours/`` (quantities)
 :mod:`.coloring`        the values of a quantity at each frame, their scale and legend
 :mod:`.camera`          the view; :mod:`.camera_file` reads one, :mod:`.aim` moves one
 :mod:`.renderer`        draws it all, in this order:
 :mod:`.trails`          lines (:mod:`.ribbons`) through earlier positions
 :mod:`.sprites`         the bodies, as light
 :mod:`.tonemap`         blurs light, and converts it to colours, or to ink on paper
 :mod:`.marks`           arrows, axes, scale bar
 :mod:`.overlay`         images of text
 :mod:`.studio`          draws without a screen
=======================  ==========================================================================================
"""
