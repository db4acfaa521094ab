"""Bars in docstrings are lengths, as in |x|, and not substitutions."""


def escape_bars(app, what, name, obj, options, lines):
    for i, line in enumerate(lines):
        if "|" in line and ">>>" not in line:
            literal = line.split("``")
            literal[::2] = [part.replace("|", r"\|") for part in literal[::2]]
            lines[i] = "``".join(literal)


def setup(app):
    app.connect("autodoc-process-docstring", escape_bars)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
