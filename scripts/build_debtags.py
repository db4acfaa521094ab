"""Build the bundled data set: words of Debian package descriptions, and the packages' debtags.

    python scripts/build_debtags.py                        # from this Debian system's package lists
    python scripts/build_debtags.py packages.jsonl.gz      # from a file with one package a line
    python scripts/build_debtags.py --texts packages       # the texts, as packages/train.jsonl and test.jsonl

On a system that has not downloaded the long descriptions: apt-get update -o Acquire::Languages=en. A line of the file
is a JSON object with "source", "text" and "tags". Only words and their counts are bundled, no sentences.
"""

import argparse
import gzip
import hashlib
import json
import re
import subprocess
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np

TARGET = Path(__file__).parents[1] / "src" / "labelsense" / "data" / "debtags.npz"
WORD = re.compile(r"[a-z][a-z0-9+#]+")
MIN_PACKAGES = 3  # training packages that have a word of the vocabulary
HELD_OUT = 0.3  # of the source packages


def from_file(path):
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def stanzas(kind):
    """Yield the stanzas of apt's lists of one kind, as dictionaries."""
    question = [
        "apt-get",
        "-o",
        "Acquire::Languages=en",
        "indextargets",
        "--format",
        "$(FILENAME)",
        f"Created-By: {kind}",
    ]
    for name in subprocess.run(question, capture_output=True, text=True, check=True).stdout.split():
        text = subprocess.run(
            ["/usr/lib/apt/apt-helper", "cat-file", name], capture_output=True, text=True, check=True
        ).stdout
        for stanza in text.split("\n\n"):
            fields = re.split(r"\n(?=[A-Za-z0-9-]+:)", stanza.strip())
            yield dict(field.split(":", 1) for field in fields if ":" in field)


def from_apt():
    descriptions = {
        s["Description-md5"].strip(): s["Description-en"] for s in stanzas("Translations") if "Description-en" in s
    }
    seen = set()
    for stanza in stanzas("Packages"):
        package = stanza.get("Package", "").strip()
        if "Tag" not in stanza or package in seen:
            continue
        seen.add(package)
        source = stanza.get("Source", package).split("(")[0].strip()
        text = descriptions.get(stanza.get("Description-md5", "").strip(), stanza.get("Description", ""))
        yield {"source": source, "text": text, "tags": expand_tags(stanza["Tag"])}


def expand_tags(field):
    """Debian writes a::{b, c} for a::b, a::c."""
    braces = re.sub(r"([\w-]+::)\{([^}]*)\}", lambda m: ", ".join(m[1] + t.strip() for t in m[2].split(",")), field)
    return sorted({tag.strip() for tag in braces.split(",") if tag.strip()})


def is_test(source):
    """Whether a source package is held out: by a hash of its name, so that it stays where it is in later builds."""
    return int(hashlib.sha256(source.encode()).hexdigest()[:8], 16) < HELD_OUT * 2**32


def csr(rows, columns):
    """Return CSR arrays of rows of (column name: count): row ends, steps between column numbers, counts."""
    number = {name: i for i, name in enumerate(columns)}
    lengths, steps, counts = [], [], []
    for row in rows:
        entries = sorted((number[name], count) for name, count in row.items() if name in number)
        lengths.append(len(entries))
        steps += np.diff([0] + [column for column, _ in entries]).tolist()
        counts += [min(count, 255) for _, count in entries]
    return np.array(lengths, np.uint16), np.array(steps, np.uint16), np.array(counts, np.uint8)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?")
    parser.add_argument("-o", "--output", type=Path, default=TARGET)
    parser.add_argument("--texts", type=Path, help="write texts and tags to this folder instead")
    args = parser.parse_args()
    packages = from_file(args.file) if args.file else from_apt()
    write_texts(packages, args.texts) if args.texts else write_counts(packages, args.output)


def write_texts(packages, folder):
    folder.mkdir(exist_ok=True)
    with open(folder / "train.jsonl", "w") as train, open(folder / "test.jsonl", "w") as test:
        for package in packages:
            line = json.dumps({"text": package["text"], "labels": package["tags"]})
            print(line, file=test if is_test(package["source"]) else train)


def write_counts(packages, output):
    rows = defaultdict(list)
    for package in packages:
        tags = [tag for tag in package["tags"] if not tag.endswith("::TODO")]
        words = Counter(WORD.findall(package["text"].lower()))
        if tags and words:
            rows[is_test(package["source"])].append((words, dict.fromkeys(tags, 1)))
    frequency = Counter(word for words, _ in rows[False] for word in words)
    vocabulary = sorted(word for word, n in frequency.items() if n >= MIN_PACKAGES)
    labels = sorted({tag for part in rows.values() for _, tags in part for tag in tags})
    arrays = {"words": np.frombuffer("\n".join(vocabulary).encode(), np.uint8)}
    arrays["labels"] = np.frombuffer("\n".join(labels).encode(), np.uint8)
    for part, name in ((False, "train"), (True, "test")):
        for i, (letter, columns) in enumerate((("X", vocabulary), ("Y", labels))):
            for piece, array in zip(
                ("lengths", "steps", "counts"), csr([r[i] for r in rows[part]], columns), strict=True
            ):
                if (letter, piece) != ("Y", "counts"):
                    arrays[f"{letter}_{name}_{piece}"] = array
    np.savez_compressed(output, **arrays)
    print(
        f"{len(rows[False])} training and {len(rows[True])} test packages, {len(vocabulary)} words, {len(labels)} tags"
    )
    print(f"{output.name}: {output.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
