#include "attention/launch.h"

#include <fmt/format.h>

#include "attention/check.h"

namespace flashback {

Status make_plan(Arch arch, const Problem& problem, Plan* plan) {
  if (Status s = check_shape(problem, arch); !s.ok()) return s;
  const Kernel* kernel = find_kernel(arch, Direction::kBackward, problem);
  if (!kernel) return internal_failure("the checks accept a problem that no kernel solves");
  *plan = plan_backward(problem, *kernel);
  return {};
}

Status make_bound_plan(Arch arch, const Problem& problem, Plan* plan) {
  if (Status s = make_plan(arch, problem, plan); !s.ok()) return s;
  return check_tensors(problem, plan->workspace.bytes);
}

Status enqueue(Device& device, const Plan& plan, Stream stream) {
  for (const PlannedLaunch& planned : plan.launches) {
    const KernelImage* image = find_image(planned.entry->image);
    if (!image)
      return internal_failure(fmt::format("the library has no kernel image {}", planned.entry->image));

    auto parameters = planned.parameters;
    if (auto* main = std::get_if<sm100::backward::Parameters>(&parameters)) {
      for (const PlannedMap& map : plan.maps) {
        if (Status s = device.encode(map.request, reinterpret_cast<std::byte*>(main) + map.offset); !s.ok()) {
          return {s.code(), fmt::format("the tensor map of {}: {}", map.tensor, s.sentence())};
        }
      }
    }
    const Launch launch{
        .image = image,
        .entry = planned.entry->name.c_str(),
        .grid = planned.grid,
        .cluster = planned.cluster,
        .block = planned.block,
        .shared_bytes = planned.shared_bytes,
        .parameters = std::visit([](const auto& p) { return std::as_bytes(std::span(&p, 1)); }, parameters)};
    if (Status s = device.launch(launch, stream); !s.ok()) {
      return {s.code(), fmt::format("{}: {}", planned.step, s.sentence())};
    }
  }
  return {};
}

}  // namespace flashback
