"""Makes what is made of the documents: the reference pages (`reference.py`) and the site (`site.py`)."""
