"""Movies: pictures of a run, one after the other, in a file.

===================  ==========================================================================================
 :mod:`.film`         which moments of the run the pictures show; the file: its format, its encoder's thread, its name
 :mod:`.make`         draws the pictures and reads them from the graphics card
 :mod:`.encoders`     one class per file format
===================  ==========================================================================================

(:mod:`nbody.viewer.picture.camera_file` moves the camera.)
"""
