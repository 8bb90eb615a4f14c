"""What names mean, without evaluating: for editors.

One file at a time (``names``), then across the files of a project (``links``), and what follows from it: renaming
(``rename``), and what could be written at a place (``completion``).
"""
