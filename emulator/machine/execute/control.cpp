// bra, ret, exit, trap, brkpt, nanosleep.
#include "emulator/machine/execute/lanes.h"
#include "emulator/program/instruction_set.h"

namespace flashback::emulator {
namespace {

void branch(Warp& warp, const Step& step, LaneMask mask) {
  warp.branch(step.target, mask);
}

void exit(Warp& warp, const Step&, LaneMask mask) {
  warp.exit(mask);
}

void trap(Warp& warp, const Step& step, LaneMask) {
  warp.fault(step, "the program trapped");
}

void breakpoint(Warp& warp, const Step& step, LaneMask) {
  warp.fault(step, "the program reached a breakpoint");
}

void sleep(Warp& warp, const Step&, LaneMask) {
  warp.poll();
}  // there is no clock; others go on

template <Body body>
Body always(Match&) {
  return body;
}

constexpr Row kRows[] = {
    {"bra{.uni}", "@:label", always<branch>},
    {"ret{.uni}", "", always<exit>},  // of an entry: it returns to nobody
    {"exit", "", always<exit>},
    {"trap", "", always<trap>},
    {"brkpt", "", always<breakpoint>},
    {"nanosleep.u32", "a:r32", always<sleep>},
};

}  // namespace

std::span<const Row> control_rows() {
  return kRows;
}

}  // namespace flashback::emulator
