#!/bin/bash
# usage: wheel.sh BUILD SITE     makes the wheel from the libraries of BUILD, judges it, and unpacks it into SITE
set -euo pipefail
build=$1 site=$2
wheel=$("$(dirname "$0")/../../tools/wheel" "$site.wheel" "$build")
[[ $wheel == */flashback_attention-*-py3-none-manylinux_*_x86_64.whl ]] ||
  { echo "wheel.sh: $wheel is not for any Python 3 on manylinux"; exit 1; }
bytes=$(stat -c %s "$wheel")
((bytes < 20 << 20)) || { echo "wheel.sh: $wheel has $bytes bytes; at most 20 MiB"; exit 1; }
rm -rf "$site"
python3 -m zipfile -e "$wheel" "$site"
