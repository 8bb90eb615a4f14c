"""What an editor asks about a project whose files are being written.

``workspace`` holds the open texts and what follows from them; ``hover``, ``completion``, ``outline`` and ``packages``
answer. Places are character offsets; a face turns them into its own.
"""
