"""A transcript as one web page that needs nothing else: no script, nothing fetched."""

from __future__ import annotations

import importlib
from typing import Any

from garra.domains.sessions.session import Session

_STYLE = """
:root { color-scheme: light dark }
body { font: 16px/1.55 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.5rem } h2 { font-size: 1rem; margin-top: 2rem; border-top: 1px solid #8886; padding-top: 1rem }
h3 { font-size: .9rem; opacity: .75 }
pre { overflow-x: auto; padding: .75rem; background: #8881; border-radius: 6px; font-size: .85rem }
blockquote { margin: 0; padding-left: 1rem; border-left: 3px solid #8886; opacity: .8 }
"""
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def html(session: Session, markdown: str) -> str:
    """`markdown` as a page; markup in it is shown and never acted on, and pictures of others are not fetched."""
    library: Any = importlib.import_module("markdown_it")
    body = library.MarkdownIt("commonmark", {"html": False}).disable("image").enable("table").render(markdown)
    title = importlib.import_module("html").escape(
        session.display_name or session.label or session.title or session.key
    )
    head = f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
    view = '<meta name="viewport" content="width=device-width">'
    return f"<!doctype html><html>{head}{view}<title>{title}</title><style>{_STYLE}</style><body>{body}</body></html>\n"
