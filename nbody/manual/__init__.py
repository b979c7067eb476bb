"""The manual: pages in Markdown, and the reference, which is made from the registries and the validated groups.

:mod:`.components` describes one component or key, for ``nbody list`` and ``nbody help`` too. :mod:`.build` makes the HTML
by Sphinx, whose settings are in ``conf.py``, from the pages here and from the READMEs of the rooms.
"""
