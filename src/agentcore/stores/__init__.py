"""Where journals live. Each file is the whole `RunStore` of one backend."""
