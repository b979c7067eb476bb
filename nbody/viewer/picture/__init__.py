"""The picture of one moment, drawn by OpenGL.

=======================  ==========================================================================================
 :mod:`.look`            what a user chooses about the picture, and the names for it; they stand for :mod:`.quantities`
                         that colours show, and :mod:`.styles`: colour maps, backgrounds, sizes
 :mod:`.coloring`        the values of a quantity at each frame, their scale and legend
 :mod:`.camera`          the view; :mod:`.camera_file` reads one, or a path; :mod:`.aim` follows bodies
 :mod:`.renderer`        draws it all, in this order:
 :mod:`.trails`          lines through earlier positions
 :mod:`.sprites`         the bodies, as light
 :mod:`.tonemap`         blurs light, and converts it to colours, or to ink on paper
 :mod:`.lines`           arrows, axes, scale bar
 :mod:`.shaders`         programs of OpenGL, images of text
 :mod:`.studio`          draws without a screen
=======================  ==========================================================================================
"""
