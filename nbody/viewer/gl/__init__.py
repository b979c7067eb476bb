"""Draws the picture of one moment by OpenGL: :mod:`.renderer` draws :mod:`.trails` and the bodies (:mod:`.sprites`) as
light, converts that to colours, or to ink on paper (:mod:`.tonemap`), and draws arrows, axes and a scale bar over it
(:mod:`.lines`). :mod:`.shaders` has the programs, and images of text over the picture; :mod:`.studio` draws without a
screen."""
