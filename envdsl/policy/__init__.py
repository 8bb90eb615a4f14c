"""Who may have which packages. Pure: the catalog, facts of wheels and the time are passed in."""
