"""Models over HTTP: Annif's interface, and what the page needs. Needs the extra ``serve``.

``app.py`` puts the parts together. ``annif.py`` and ``insight.py`` have the routes; ``reading.py`` reads requests and
``problems.py`` words refusals. ``project.py`` is a model being served: ``batching.py`` gathers what is asked of it,
``answers.py`` asks it, ``learning.py`` and ``journal.py`` change it. Every request goes through ``boundary.py``.
"""
