"""Draws the picture of one moment by OpenGL. :mod:`.renderer` draws it all, in this order:

=================  =====================================================
 :mod:`.trails`    lines through earlier positions
 :mod:`.sprites`   the bodies, as light
 :mod:`.tonemap`   blurs light, and converts it to colours, or to ink on paper
 :mod:`.lines`     arrows, axes, scale bar
 :mod:`.shaders`   the programs of OpenGL; images of text over the picture
=================  =====================================================

:mod:`.studio` draws without a screen.
"""
