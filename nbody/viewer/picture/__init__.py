"""What a picture says, without drawing it: the look that a user chooses (:mod:`.look`), the quantities that colours show
(:mod:`.quantities`, :mod:`.coloring`), colour maps, backgrounds and sizes (:mod:`.styles`), and what the camera does
(:mod:`.aim`, :mod:`.camera_file`)."""
