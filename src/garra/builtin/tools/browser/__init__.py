"""A browser for pages that need one."""
