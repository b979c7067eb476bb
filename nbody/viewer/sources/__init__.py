"""Where the bodies of a picture come from: a recording, or a simulation that is running."""
