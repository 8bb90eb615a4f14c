"""One set of figures, told in five kinds of document."""
