#!/bin/bash
# Breaks each rule of rules.sh in a small tree of its own and expects to be caught; a clean tree passes.
set -euo pipefail
rules=$(dirname "$(realpath "$0")")/rules.sh
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
failed=0

expect() {  # STATUS RULE FILE LINE: a tree that holds only FILE with LINE
  local status=0
  rm -rf "${tree:?}"/*
  mkdir -p "$tree/include" "$tree/$(dirname "$3")"
  echo "$4" >"$tree/$3"
  "$rules" "$2" "$tree" >/dev/null 2>&1 || status=$?
  [[ $status == "$1" ]] || { echo "rule $2, $3 with '$4': exit $status, expected $1"; failed=1; }
}

expect 1 layers emulator/machine/a.h '#include "attention/plan.h"'
expect 1 layers emulator/a.cpp '#include "kernels/common/parameters.h"'
expect 1 layers emulator/ptx/a.h '#include "emulator/machine/machine.h"'
expect 1 layers kernels/a.cuh '#include "emulator/machine/machine.h"'
expect 1 layers kernels/a.cuh '#include <cuda/ptx>'
expect 1 layers attention/a.cpp '#include "emulator/machine/machine.h"'
expect 1 layers include/flashback/a.h '#include "attention/plan.h"'
expect 0 layers emulator/machine/a.h '#include "emulator/ptx/module.h"'
expect 0 layers attention/a.cpp '#include "kernels/common/parameters.h"'

expect 1 quiet attention/a.cpp 'void f() { printf("x"); }'
expect 1 quiet emulator/a.cpp 'void f() { std::cerr << 1; }'
expect 1 quiet device/a.cpp 'void f() { std::abort(); }'
expect 1 quiet device/a.cpp 'void f() { exit(1); }'
expect 0 quiet device/a.cpp 'void f(char* t) { snprintf(t, 4, "x"); }  // not printf("x")'
expect 0 quiet emulator/a.cpp 'void f(Warp& warp) { warp.exit(3); execute::exit(warp); }'
expect 0 quiet emulator/a.h 'struct Warp { void exit(int lanes); };'
expect 0 quiet emulator/cuda/report.cpp 'void f() { fmt::print(stderr, "x"); }'
expect 1 quiet emulator/cuda/reports.cpp 'void f() { fmt::print(stderr, "x"); }'
expect 0 quiet program/a.cpp 'void f() { printf("x"); }'

expect 1 public include/flashback/a.h 'class A;'
expect 1 public include/flashback/a.hpp '#include <span>
std::span<int> f();'
expect 0 public include/flashback/a.h 'struct a { int b; };'
exit $failed
