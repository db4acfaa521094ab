"""Take the picture of the service's page for README and docs.

`labelsense demo --serve` must be running; then: python scripts/screenshot.py ADDRESS docs/_static/screenshot.png
"""

from __future__ import annotations

import shutil
import sys

from PIL import Image
from playwright.sync_api import sync_playwright

TEXT = "A console program to play chess against the computer, with an opening book and a strong engine."


def main(address: str, target: str) -> None:
    with sync_playwright() as playwright:
        chromium = shutil.which("chromium") or shutil.which("google-chrome")
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1180, "height": 960}, device_scale_factor=1.5)
        page.goto(address)
        page.get_by_role("textbox").first.fill(TEXT)
        page.wait_for_timeout(1500)
        page.locator("#labels").get_by_text("game::board:chess").first.click()
        page.wait_for_timeout(1500)
        page.evaluate("scrollTo(0, 0)")
        page.wait_for_timeout(300)
        page.screenshot(path=target)
        browser.close()
    # Few colours are enough for a page of text, and a third of the bytes.
    Image.open(target).convert("RGB").quantize(64, dither=Image.Dither.NONE).save(target, optimize=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
