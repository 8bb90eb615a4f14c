"""The admin pages: HTML from the server, which htmx makes quicker and which works without it.

:mod:`envdsl.web.pages.routes` is all of them at a glance. A page is a view function that gets a
:class:`~envdsl.web.pages.visit.Visit`, asks :mod:`envdsl.app` for what it shows, and puts that into a frozen view
model for one template.
"""
