#!/bin/bash
# usage: rules.sh RULE ROOT      RULE: layers | quiet | public
# The rules of the architecture that a compiler does not see, on the tree at ROOT. Prints every line that breaks RULE
# and exits 1 if there is one. public needs the compilers CC and CXX.
set -euo pipefail
rule=$1
cd "$2"
broken=0

exempt=none
sources() {  # every C++ and CUDA file below the folders $@ that exist, but $exempt
  find "$@" -type f ! -path "$exempt" \( -name '*.h' -o -name '*.hpp' -o -name '*.cuh' -o -name '*.cu' -o -name '*.cpp' \) 2>/dev/null |
    sort || true
}

# forbid WHY PATTERN FOLDER...: no line of the folders matches, comments aside.
forbid() {
  local why=$1 pattern=$2 file found
  shift 2
  while read -r file; do
    found=$(sed 's|//.*||' "$file" | grep -nP "$pattern") || continue
    sed "s|^|$file:|; s|\$|    <- $why|" <<<"$found"
    broken=1
  done < <(sources "$@")
}

# includes FOLDER ALLOWED...: project headers that FOLDER includes lie below one of ALLOWED.
includes() {
  local folder=$1
  shift
  forbid "$folder may include project headers of: $*" "#include \"(?!($(IFS='|'; echo "$*"))/)" "$folder"
}

layers() {
  includes emulator/ptx emulator/ptx device
  includes emulator/program emulator/program emulator/ptx device
  includes emulator/machine emulator/machine emulator/program emulator/ptx device
  includes emulator emulator device
  includes device device
  includes kernels kernels device
  includes attention attention kernels device include flashback
  includes include flashback
  forbid "kernels need none of the CUDA toolkit's headers, which no wheel of cmake/nvcc-wheels.txt has to hold" \
    '#include <(cu|cooperative_groups|mma|nv/)' kernels
}

quiet() {
  local libraries=(include attention device emulator kernels)
  exempt=emulator/cuda/report.cpp  # it stands in for CUDA's libraries: nobody is there to return a sentence to
  forbid "a library never prints: it returns a sentence" \
    '(?<![\w>.])(std::)?(printf|fprintf|vprintf|puts|fputs|putchar|perror)\s*\(|std::(cout|cerr|clog)|fmt::print' "${libraries[@]}"
  forbid "a library never ends the process: it returns a status" \
    '(?<![\w>.:])(?<!void )((std)?::)?(abort|exit|_exit|_Exit|quick_exit|terminate)\s*\(' "${libraries[@]}"
}

public() {
  local header
  for header in $(cd include && find . -name '*.h' -o -name '*.hpp' | sort); do
    echo "#include \"${header#./}\"" | "$CXX" -std=c++17 -Wall -Wextra -Wpedantic -Werror -Iinclude -fsyntax-only -x c++ - ||
      { echo "$header does not compile alone as C++17"; broken=1; }
    [[ $header == *.hpp ]] && continue
    echo "#include \"${header#./}\"" | "$CC" -std=c99 -Wall -Wextra -Wpedantic -Werror -Iinclude -fsyntax-only -x c - ||
      { echo "$header does not compile alone as C99"; broken=1; }
  done
}

case $rule in
  layers | quiet | public) "$rule" ;;
  *) echo "rules.sh: no rule '$rule'; there are layers, quiet and public" >&2; exit 2 ;;
esac
exit $broken
