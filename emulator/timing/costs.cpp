#include "emulator/timing/costs.h"

#include "emulator/timing/sm100.h"
#include "emulator/timing/sm90.h"

namespace flashback::emulator::timing {

static_assert(std::size(kSm100) == sizeof(Costs) / sizeof(double));
static_assert(std::size(kSm90) == sizeof(Costs) / sizeof(double));

std::span<const Constant> constants(Arch arch) {
  if (arch == Arch::kSm100) return kSm100;
  return kSm90;
}

Costs nominal(Arch arch) {
  Costs costs{};
  for (const Constant& constant : constants(arch)) costs.*constant.value = constant.nominal;
  return costs;
}

}  // namespace flashback::emulator::timing
