#!/bin/bash
# usage: surface.sh LIBFLASHBACK     fails where the shared library needs more than the C library or shows more than its API
set -euo pipefail
needed=$(readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -vE '^(libc|libm|libdl|ld-linux-.*)\.so' || true)
shown=$(nm -D --defined-only "$1" | awk '{print $3}' | grep -v '^flashback_' || true)
[[ -z $needed ]] || { echo "needs other libraries: $needed"; exit 1; }
[[ -z $shown ]] || { echo "shows other symbols: $shown"; exit 1; }
functions=$(nm -D --defined-only "$1" | grep -c ' T flashback_')
[[ $functions -ge 10 ]] || { echo "shows $functions functions only"; exit 1; }
