#include "program/pass.h"

namespace flashback::program {

PassResults run_pass(Workbench& emulator, const Problem& problem, const DeviceInputs& inputs) {
  if (problem.direction == Direction::kForward) return run_forward_on(emulator, true, problem, inputs);
  return run_on(emulator, true, problem, inputs);
}

std::string difference(Arch arch, const Problem& problem, const PassResults& a, const PassResults& b,
                       bool shuffled) {
  std::string tensors;
  const auto compare = [&](const char* name, const auto& x, const auto& y) {
    if (x != y) tensors += (tensors.empty() ? "" : ", ") + std::string(name);
  };
  if (problem.direction == Direction::kForward) {
    const auto &x = std::get<DeviceOutputs>(a), &y = std::get<DeviceOutputs>(b);
    compare("out", x.out, y.out);
    compare("lse", x.lse, y.lse);
    return tensors;
  }
  const auto &x = std::get<DeviceGradients>(a), &y = std::get<DeviceGradients>(b);
  const bool by_start = shuffled && !problem.deterministic;
  const bool summed_keys = arch == Arch::kSm100 && problem.shape.heads != problem.shape.kv_heads;
  if (!by_start) compare("dq", x.dq, y.dq);
  if (!by_start || !summed_keys) {
    compare("dk", x.dk, y.dk);
    compare("dv", x.dv, y.dv);
  }
  compare("dsink", x.dsink, y.dsink);
  return tensors;
}

}  // namespace flashback::program
