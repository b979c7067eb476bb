"""Movies: pictures of a run, one after the other, in a file.

===================  ==========================================================================================
 :mod:`.moments`      which moments of the run the pictures show
 :mod:`.cameras`      how the camera moves: at rest, turning, following, along a path from a file
 :mod:`.make`         draws the pictures and reads them from the graphics card
 :mod:`.writing`      the file: its encoder's thread, its name
 :mod:`.formats`      the file formats, a registry of :mod:`.encoders`
===================  ==========================================================================================
"""
