"""The typed configuration: one module a section, `Config` is all of them."""

from garra.config.sections.root import Config

__all__ = ["Config"]
