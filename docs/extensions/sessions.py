"""Sessions in pages are run: what a page shows below a command is what it printed when the site was built.

``{file} name`` writes a file into the page's own folder and shows it with its name, ``{session}`` runs the lines that
begin with "$ " there. A command that fails ends the build.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

from docutils import nodes
from sphinx.directives.code import container_wrapper
from sphinx.util.docutils import SphinxDirective

LANGUAGES = {".py": "python", ".jsonl": "json", ".json": "json"}
BAR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r[^\n]")


class Run(SphinxDirective):
    """What both directives share: the folder of the page."""

    has_content = True

    def folder(self):
        """Return the folder of the page, empty when the page begins."""
        folder = Path(self.env.doctreedir).parent / "sessions" / self.env.docname
        if not self.env.temp_data.setdefault("has_session", False):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            self.env.temp_data["has_session"] = True
        return folder


class File(Run):
    """Write a file and show it."""

    required_arguments = 1

    def run(self):
        name, text = self.arguments[0], "\n".join(self.content) + "\n"
        (self.folder() / name).write_text(text)
        block = nodes.literal_block(text, text, language=LANGUAGES.get(Path(name).suffix, "text"))
        return [container_wrapper(self, block, name)]


class Session(Run):
    """Run commands and show what they print."""

    def run(self):
        folder, shown = self.folder(), []
        env = os.environ | {"COLUMNS": "96", "NO_COLOR": "1", "TERM": "dumb"}
        for line in self.content:
            done = subprocess.run(
                line.removeprefix("$ "), shell=True, cwd=folder, env=env, capture_output=True, text=True, check=False
            )
            if done.returncode:
                raise self.error(f"{line} ended with {done.returncode}: {done.stdout}{done.stderr}")
            shown.append(f"{line}\n{BAR.sub('', done.stderr + done.stdout)}".rstrip())
        text = "\n\n".join(shown)
        return [nodes.literal_block(text, text, language="console")]


def setup(app):
    app.add_directive("file", File)
    app.add_directive("session", Session)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
