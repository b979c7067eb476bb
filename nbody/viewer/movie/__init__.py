"""Movies: pictures of a run, one after the other, in a file.

===================  ==========================================================================================
 :mod:`.moments`      which moments of the run the pictures show
 :mod:`.cameras`      how the camera moves: at rest, turning, following, along a path from a file
 :mod:`.make`         draws the pictures and passes them to the encoder
 :mod:`.readback`     copies pictures from the graphics card while it draws the next one
 :mod:`.nv12`         converts a picture to the colours of video, on the graphics card
 :mod:`.writing`      the file: its encoder's thread, its name
 :mod:`.formats`      the file formats, a registry
===================  ==========================================================================================
"""
