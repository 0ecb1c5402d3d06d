"""`readcache mcp`: an MCP server over stdio."""
