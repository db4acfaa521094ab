#!/usr/bin/env bash
# Make sure that there is a Chromium for the tests of the page: one that the machine has, Debian's, or Playwright's own.
set -euo pipefail
python="$1"
if command -v chromium chromium-browser google-chrome > /dev/null; then
    exit
fi
if command -v apt-get > /dev/null && [ "$(id -u)" = 0 ]; then
    echo "installing chromium ..."
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends chromium fonts-liberation > /dev/null
else
    "$python" -m playwright install chromium
fi
