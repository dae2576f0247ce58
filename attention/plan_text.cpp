// A plan as a person reads it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iterator>
#include <span>

#include "attention/plan.h"

namespace flashback {
namespace {

std::string_view word(Swizzle swizzle) {
  switch (swizzle) {
    case Swizzle::kNone:
      return "none";
    case Swizzle::k32:
      return "32 bytes";
    case Swizzle::k64:
      return "64 bytes";
    case Swizzle::k128:
      return "128 bytes";
  }
  return "?";
}

std::string text(Dim3 d) {
  return fmt::format("{} x {} x {}", d.x, d.y, d.z);
}

// "q 3 tiles, k 4 tiles", of all sequences; of ragged ones at the most.
std::string text(const shared::Sequences& s) {
  return fmt::format("sequences {}, tiles of a head: q {}, k {}", s.batch, s.q.all_tiles, s.k.all_tiles);
}
std::string text(const common::ScheduleParameters& p) {
  return text(p.sequences);
}
std::string text(const common::SinkParameters& p) {
  return text(p.sequences);
}
std::string text(const common::PreprocessParameters& p) {
  return text(p.sequences);
}
std::string text(const sm90::backward::Parameters& p) {
  return fmt::format("{}, kv_heads {}, group {} in parts of {}, sections of {}, scale {}, scale_log2 {}",
                     text(p.sequences), p.kv_heads, p.group, p.part_heads, p.section, p.scale, p.scale_log2);
}
std::string text(const sm100::backward::Parameters& p) {
  return fmt::format("{}, group {}, scale {}, scale_log2 {}", text(p.sequences), p.group, p.scale,
                     p.scale_log2);
}
std::string text(const common::ForwardParameters& p) {
  return fmt::format("{}, heads {} in sections of {}, group {}, scale_log2 {}{}", text(p.sequences), p.heads,
                     p.section, p.group, p.negate_q ? "-" : "", p.scale_log2);
}
std::string text(const common::UnseenParameters& p) {
  return text(p.sequences);
}
std::string text(const common::PostprocessParameters& p) {
  return fmt::format("{}, scale {}", text(p.sequences), p.scale);
}

}  // namespace

std::string to_text(const Plan& plan) {
  const Shape& s = plan.problem.shape;
  std::string out =
      fmt::format("{} on {}: batch {}, heads {}, kv_heads {}, seqlen_q {}, seqlen_k {}, head_dim {}, {}, {}",
                  name(plan.kernel->direction), name(plan.kernel->arch), s.batch, s.heads, s.kv_heads,
                  s.seqlen_q, s.seqlen_k, s.head_dim, name(plan.problem.dtype), name(plan.problem.mask));
  auto line = std::back_inserter(out);
  if (plan.kernel->tensor_memory) fmt::format_to(line, ", {}", name(*plan.kernel->tensor_memory));
  if (plan.kernel->signal) fmt::format_to(line, ", {}", name(*plan.kernel->signal));
  out += '\n';

  fmt::format_to(line, "\nlaunches, in stream order\n");
  for (const WorkspacePart& part : plan.cleared) fmt::format_to(line, "  {:<12}{}\n", "clear", part.name);
  for (const PlannedLaunch& launch : plan.launches) {
    fmt::format_to(line, "  {:<12}{}\n", launch.step, launch.entry->name);
    fmt::format_to(line, "  {:12}grid {}{}, cluster {}, block {}, dynamic shared memory {} bytes\n", "",
                   text(launch.grid), launch.together ? " at once" : "", text(launch.cluster),
                   text(launch.block), launch.shared_bytes);
    fmt::format_to(line, "  {:12}{}\n", "",
                   std::visit([](const auto& p) { return text(p); }, launch.parameters));
  }

  fmt::format_to(line, "\ntensor maps of the main launch: (channel, row, head, batch, shift)\n");
  for (const PlannedMap& map : plan.maps) {
    const TensorMapRequest& r = map.request;
    const auto rank = static_cast<std::size_t>(r.rank);
    fmt::format_to(line, "  {:<6}dims {}, strides {} bytes, box {}, swizzle {}\n", map.tensor,
                   fmt::join(std::span(r.dims, rank), " x "), fmt::join(std::span(r.strides, rank - 1), ", "),
                   fmt::join(std::span(r.box, rank), " x "), word(r.swizzle));
  }

  fmt::format_to(line, "\nworkspace: {} bytes\n", plan.workspace.bytes);
  for (const WorkspacePart& part : plan.workspace.parts) {
    fmt::format_to(line, "  {:<12}at {:>12}, {:>12} bytes\n", part.name, part.offset, part.bytes);
  }
  return out;
}

}  // namespace flashback
