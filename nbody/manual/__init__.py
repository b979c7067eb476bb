"""The manual: HTML by Sphinx, from the pages here, from the READMEs of the rooms where they stand, and from the registries.

``python -m nbody.manual FOLDER`` makes it, and so does ``nbody docs``; :mod:`.generated` writes the parts of a page that
stand for a registry, the keys of a scenario, the command line or the Python API.
"""
