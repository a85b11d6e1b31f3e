"""Tools made of functions, and collections of them."""
