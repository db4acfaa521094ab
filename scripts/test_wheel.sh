#!/usr/bin/env bash
# Run the tests with a wheel in a fresh environment, in a folder without the source: test_wheel.sh PYTHON WHEEL
set -euo pipefail
python=$1
wheel=$(realpath "$2")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip --disable-pip-version-check --quiet install --constraint constraints.txt "${wheel}[dev]"
mkdir "$folder/files"
cp -r tests docs scripts benchmarks fuzz Makefile ./*.md ./*.toml ./*.txt "$folder/files"
cd "$folder/files"
export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
"$folder/venv/bin/python" -c "import labelsense; print('testing', labelsense.__file__)"
"$folder/venv/bin/python" -m pytest --numprocesses=auto --maxprocesses=4 --dist=loadgroup
