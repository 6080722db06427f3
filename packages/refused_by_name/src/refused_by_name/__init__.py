"""Refused by name: where a package looks at a device's name instead of what the device can do.

``device_words`` has the names, ``definitions`` what a source defines, ``name_tests`` what a test is for a
device of some name, ``consequences`` what follows from it, ``scan`` goes through a package, ``tried_feature``
runs a feature with the name let through, and ``command`` is the command line.
"""
