"""The contracts. Nothing to inherit: an object that has the methods fits.

Every protocol has at least two implementations in this project, one of them in memory.
"""
