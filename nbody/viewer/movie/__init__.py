"""Movies: pictures of a run, one after the other, in a file. :mod:`.film` has the moments that they show, the file and its
encoder's thread; :mod:`.make` draws the pictures and reads them from the graphics card; :mod:`.encoders`: a class per
format.
"""
