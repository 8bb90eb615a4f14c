"""From the symbols of the grammar to a page.

Comments are hung on tokens (``trivia``), rules become documents (``layout``, ``chains``, ``texts``; their parts in
``documents``), and documents become lines (``render``).
"""
