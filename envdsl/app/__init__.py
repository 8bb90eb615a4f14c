"""Where all rooms meet: what each command does, free of how it is shown.

The faces (``cli`` today) call these functions and render what they return; nothing here prints.
"""
