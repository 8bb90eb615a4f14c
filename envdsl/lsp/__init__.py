"""The language server: a face over ``app.editing`` for editors that speak the Language Server Protocol (3.17)."""
