"""The MCP face: ``python_env`` as a tool of the Model Context Protocol, over stdio and streamable HTTP."""
