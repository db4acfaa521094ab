"""Send the service what schemathesis makes of its description; `make fuzz-service` runs this.

Every answer must be one that /openapi.json describes, nothing that it allows may be refused, nothing that it forbids
accepted, and the process must live and log no traceback.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from labelsense import CompressedLabelClassifier, HadamardCompressor, RidgeLearner

KEY = "a-key-for-this-run"
EXAMPLES = "40"


def main() -> None:
    fuzzer = Path(sys.argv[1]).resolve() / "bin" / "schemathesis"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        learner = RidgeLearner(alpha=0.1, updatable=True)
        model = CompressedLabelClassifier(
            HadamardCompressor(8, reserve=1000), learner, features="words", random_state=0
        )
        texts, labels = ["a red fox", "two hens", "a chess game"] * 5, [["fox"], ["hen", "egg"], ["chess"]] * 5
        model.fit(texts, labels).save(folder / "tags.model")
        (folder / "keys").write_text(f"{KEY}\n")
        command = [Path(sys.executable).parent / "labelsense", "serve", folder / "tags.model", "--port", "0"]
        command += ["--allow-learning", "--api-key-file", folder / "keys", "--max-text", "10000"]
        log = folder / "log"
        with log.open("wb") as file:
            server = subprocess.Popen(command, stderr=file)
        while " at http" not in log.read_text():
            assert server.poll() is None, log.read_text()
            time.sleep(0.1)
        address = log.read_text().split(" at ")[1].split()[0]
        settings = ["--url", address.rstrip("/"), "-H", f"X-API-Key: {KEY}", "--max-examples", EXAMPLES, "--seed", "1"]
        settings += ["--checks", "all", "--suppress-health-check", "too_slow"]  # how fast the fuzzer is does not matter
        done = subprocess.run([fuzzer, "run", f"{address}openapi.json", *settings], cwd=folder)
        assert server.poll() is None, "the server has ended"
        server.terminate()
        assert server.wait(60) == 0
        assert "Traceback" not in log.read_text(), log.read_text()
        sys.exit(done.returncode)


if __name__ == "__main__":
    main()
