// How a body is written: a lambda over one lane, applied to the lanes of the mask. The full mask is a plain
// loop that the compiler turns into vectors.
#pragma once

#include "emulator/machine/warp.h"

namespace flashback::emulator {

template <class F>
inline void each_lane(LaneMask mask, F&& body) {
  if (mask == kAllLanes) {
#pragma GCC ivdep
    for (int lane = 0; lane < 32; ++lane) body(lane);
  } else {
    for (LaneMask rest = mask; rest != 0; rest &= rest - 1) body(__builtin_ctz(rest));
  }
}

// Bodies of the usual shapes: d = f(a), d = f(a, b), d = f(a, b, c), for a captureless lambda f as a value.
template <class D, class A, auto f>
void unary(Warp& warp, const Step& step, LaneMask mask) {
  D* d = warp.lanes<D>(step.d);
  const A* a = warp.lanes<A>(step.a);
  each_lane(mask, [&](int l) { d[l] = f(a[l]); });
}

template <class D, class A, class B, auto f>
void binary(Warp& warp, const Step& step, LaneMask mask) {
  D* d = warp.lanes<D>(step.d);
  const A* a = warp.lanes<A>(step.a);
  const B* b = warp.lanes<B>(step.b);
  each_lane(mask, [&](int l) { d[l] = f(a[l], b[l]); });
}

template <class D, class A, class B, class C, auto f>
void ternary(Warp& warp, const Step& step, LaneMask mask) {
  D* d = warp.lanes<D>(step.d);
  const A* a = warp.lanes<A>(step.a);
  const B* b = warp.lanes<B>(step.b);
  const C* c = warp.lanes<C>(step.c);
  each_lane(mask, [&](int l) { d[l] = f(a[l], b[l], c[l]); });
}

}  // namespace flashback::emulator
