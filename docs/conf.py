"""The site: `make docs` builds it into build/docs, where index.html can be opened without a server."""

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # the command labelsense
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # pages and tutorials run beside each other
sys.path += [str(HERE / "extensions")]
sys.path += [
    str(HERE.parent / "tests"),
    str(HERE.parent / "benchmarks"),
]  # the rows of the import graph; what versions took

from labelsense import __version__  # noqa: E402

project = "labelsense"
author = "the labelsense developers"
copyright = author
release = version = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "docstrings",
    "mathml",
    "cli_reference",
    "layers",
    "performance_history",
    "sessions",
]
exclude_patterns = ["tutorials", "gallery/*.ipynb"]
templates_path = ["_templates"]
root_doc = "index"
nitpicky = False

myst_enable_extensions = ["dollarmath", "amsmath", "attrs_block", "colon_fence", "deflist"]
myst_heading_anchors = 3
html_math_renderer = "mathml"

autosummary_generate = True
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings have them in words
autodoc_inherit_docstrings = True
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

sphinx_gallery_conf = {
    "examples_dirs": "tutorials",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/\d\d_",
    "within_subsection_order": "FileNameSortKey",
    "capture_repr": ("_repr_html_", "__repr__"),
    "abort_on_example_error": True,
    "show_memory": False,
    "show_signature": False,
    "download_all_examples": False,
    "min_reported_time": 0,
    "write_computation_times": False,
    "remove_config_comments": True,
    "parallel": 2,
    "default_thumb_file": str(HERE / "_static" / "logo.svg"),
    "thumbnail_size": (400, 280),
    "backreferences_dir": None,
    "notebook_images": False,
}

html_theme = "pydata_sphinx_theme"
html_title = f"labelsense {__version__}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_logo = "_static/logo.svg"
html_favicon = "_static/logo.svg"
html_copy_source = False
html_show_sourcelink = False
html_show_search_summary = False  # browsers do not let a page of a folder read its neighbours
html_sidebars = {"index": []}
html_theme_options = {
    "logo": {"text": "labelsense"},
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "header_links_before_dropdown": 6,
    "show_toc_level": 2,
    "navigation_depth": 2,
    "show_nav_level": 1,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "back_to_top_button": False,
}
