"""The vocabulary: frozen data, no I/O. One topic per module; `records` is a package.

Every value is a frozen dataclass with a literal `kind`. `codec` turns any of them into
JSON and back without loss; kinds and fields a newer version added survive as `Unknown`
and in `extra`.
"""
