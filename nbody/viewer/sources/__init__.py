"""Where the bodies of a picture come from: a recording, or a simulation that is running.

A :class:`~.source.Source` (:mod:`.recording`, :mod:`.live`) gives frames (:class:`~.frames.ShownFrame`: the bodies at one
time) in pairs: a :class:`~.frames.ShownMoment` is a time between two of them. The renderer takes these to the screen.
"""
