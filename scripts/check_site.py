"""Check a built site: links inside of it lead somewhere, and no page loads anything from elsewhere.

python scripts/check_site.py build/docs
"""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

LOADS = {"script": "src", "img": "src", "iframe": "src", "source": "src", "video": "src", "link": "href", "use": "href"}
RELATIONS = {"stylesheet", "icon", "preload", "modulepreload", "manifest"}  # of <link>, that a browser fetches
FETCHED = re.compile(r"""(?:@import\s+|url\()\s*["']?(https?:)?//""")


class Page(HTMLParser):
    """What a page links to, what it loads, and the places in it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.loads: set[str] = set()
        self.places: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attributes}
        self.places |= {found[name] for name in ("id", "name") if name in found}
        if tag == "a" and "href" in found:
            self.links.add(found["href"])
        elif found.get(LOADS.get(tag, "")) and (tag != "link" or RELATIONS & set(found.get("rel", "").split())):
            self.loads.add(found[LOADS[tag]])


def check(site: Path) -> list[str]:
    """Return what is wrong, in words."""
    written = [path for path in sorted(site.rglob("*.html")) if "_static" not in path.parts]  # not the theme's own
    pages = {path: Page(path.read_text()) for path in written}
    styles = [path for path in site.rglob("*.css") if FETCHED.search(path.read_text())]
    wrong = [f"{path.relative_to(site)} loads from elsewhere" for path in styles]
    for path, page in pages.items():
        name = path.relative_to(site)
        for address in sorted(page.links | page.loads):
            if urlsplit(address).scheme or address.startswith("//"):
                if address in page.loads and not address.startswith("data:"):
                    wrong.append(f"{name} loads {address}")
                continue
            file, place = urldefrag(unquote(address))
            target = (path.parent / file.partition("?")[0]).resolve() if file.partition("?")[0] else path
            if not target.exists():
                wrong.append(f"{name} links to {address}, which is not there")
            elif place and target in pages and place not in pages[target].places:
                wrong.append(f"{name} links to {address}, and the page has no such place")
    return wrong


if __name__ == "__main__":
    site = Path(sys.argv[1]).resolve()
    problems = check(site)
    print(*problems, sep="\n")
    print(f"{len(problems)} problems with links and what is loaded")
    sys.exit(bool(problems))
