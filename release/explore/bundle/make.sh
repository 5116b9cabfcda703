#!/bin/sh
# Makes ../reader.min.js anew from the pinned packages, with the hash that a test holds. Needs node, and a network.
set -eu
cd "$(dirname "$0")"
npm ci --omit-lockfile-registry-resolved --no-audit --no-fund --ignore-scripts
npx esbuild entry.js --bundle --minify --format=iife --global-name=parquet --target=es2022 --legal-comments=none --log-level=warning \
  --outfile=../reader.min.js
{
  for package in hyparquet fzstd; do
    printf '%s %s\n\n' "$package" "$(node -p "require('./node_modules/$package/package.json').version")"
    cat "node_modules/$package/LICENSE"
    printf '\n'
  done
} > ../LICENSES.txt
(cd .. && sha256sum reader.min.js > reader.min.js.sha256)
rm -rf node_modules
