// `flashback plan`: what would be launched for a problem, and where its tiles live, without launching it.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <nlohmann/json.hpp>

#include "attention/launch.h"
#include "kernels/sm100/backward/config.h"
#include "kernels/sm100/forward/config.h"
#include "program/problem_options.h"
#include "program/run_report.h"
#include "program/subcommand.h"
#include "program/tensor_memory_map.h"

namespace flashback::program {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kExamples = R"(Examples:
  flashback plan backward --seqlen-q 4096 --heads 32
  flashback plan backward --variants aliased/cta,split/warp
  flashback plan backward --causal --json
  flashback plan forward --seqlen-q 4096 --heads 32 --causal)";

// The backward pass's map; that of head dim 128 is the only one that fits.
TensorMemory map_of(const Kernel& row) {
  return row.tensor_memory.value_or(TensorMemory::kAliased);
}

TensorMemoryTile tile_of(const char* name, const tile::Columns& at, bool accumulator) {
  return {name, at.first, at.count, accumulator};
}

std::vector<TensorMemoryTile> backward_tiles(const Kernel& row) {
  namespace kernel = sm100::backward;
  const kernel::TensorColumns columns = kernel::tensor_columns(
      map_of(row) == TensorMemory::kSplit ? kernel::TensorMemory::kSplit : kernel::TensorMemory::kAliased,
      static_cast<int>(row.head_dim));
  return {tile_of("S", columns.s, true),   tile_of("dV", columns.dv, true), tile_of("dP", columns.dp, true),
          tile_of("dK", columns.dk, true), tile_of("P", columns.p, false),  tile_of("dS", columns.ds, false),
          tile_of("dQ", columns.dq, true)};
}

// Of the two halves of a CTA's queries.
std::vector<TensorMemoryTile> forward_tiles(const Kernel& row) {
  const auto columns = sm100::forward::tensor_columns(static_cast<int>(row.head_dim));
  return {tile_of("S0", columns.s[0], true),  tile_of("S1", columns.s[1], true),
          tile_of("O0", columns.o[0], true),  tile_of("O1", columns.o[1], true),
          tile_of("P0", columns.p[0], false), tile_of("P1", columns.p[1], false)};
}

// In the order in which a step of the kernel fills them.
std::vector<TensorMemoryTile> tensor_memory_tiles(const Kernel& row) {
  return row.direction == Direction::kForward ? forward_tiles(row) : backward_tiles(row);
}

Json json_of(Dim3 dim) {
  return {dim.x, dim.y, dim.z};
}

Json json_of(const Plan& plan) {
  Json json = {{"arch", name(plan.kernel->arch)},
               {"shape", to_json(plan.problem.shape)},
               {"dtype", name(plan.problem.dtype)},
               {"causal", plan.problem.mask == Mask::kCausal},
               {"window", {plan.problem.mask.left, plan.problem.mask.right}},
               {"scale", effective_scale(plan.problem)},
               {"tile", {plan.kernel->tile_q, plan.kernel->tile_k}}};
  if (plan.kernel->tensor_memory) json["tmem"] = name(*plan.kernel->tensor_memory);
  if (plan.kernel->signal) json["signal"] = name(*plan.kernel->signal);
  json["launches"] = Json::array();
  for (const PlannedLaunch& launch : plan.launches) {
    json["launches"].push_back({{"step", launch.step},
                                {"entry", launch.entry->name},
                                {"grid", json_of(launch.grid)},
                                {"together", launch.together},
                                {"cluster", json_of(launch.cluster)},
                                {"block", json_of(launch.block)},
                                {"shared_bytes", launch.shared_bytes}});
  }
  json["workspace"] = {{"bytes", plan.workspace.bytes}, {"parts", Json::array()}};
  for (const WorkspacePart& part : plan.workspace.parts) {
    json["workspace"]["parts"].push_back(
        {{"name", part.name}, {"offset", part.offset}, {"bytes", part.bytes}});
  }
  if (plan.kernel->arch != Arch::kSm100) return json;
  json["tensor_memory"] = Json::array();
  for (const TensorMemoryTile& tile : tensor_memory_tiles(*plan.kernel)) {
    json["tensor_memory"].push_back({{"name", tile.name},
                                     {"first", tile.first},
                                     {"columns", tile.columns},
                                     {"format", tile.accumulator ? "fp32" : "16 bit"}});
  }
  return json;
}

std::string text_of(const Plan& plan) {
  std::string text = to_text(plan);
  if (plan.kernel->arch != Arch::kSm100) return text;
  return text +
         fmt::format("\ntensor memory{}: {} columns of 32 bits, 128 lanes\n\n{}",
                     plan.kernel->direction == Direction::kForward
                         ? ""
                         : fmt::format(", {}", name(map_of(*plan.kernel))),
                     tile::kTensorMemoryColumns,
                     draw_tensor_memory(tensor_memory_tiles(*plan.kernel), tile::kTensorMemoryColumns));
}

ExitCode plan_pass(const ProblemOptions& options, bool json) {
  Problem problem = options.problem();
  std::string text;
  Json list = Json::array();
  for (const Variant& variant : options.variants()) {
    problem.tensor_memory = variant.tensor_memory;
    problem.signal = variant.signal;
    Plan plan;
    require(make_plan(options.arch().value_or(Arch::kSm100), problem, &plan));
    text += (text.empty() ? "" : "\n") + text_of(plan);
    list.push_back(json_of(plan));
  }
  if (!json) {
    fmt::print("{}", text);
  } else {
    fmt::print("{}\n", (list.size() == 1 ? list[0] : Json{{"plans", list}}).dump(2));
  }
  return kRight;
}

}  // namespace

void add_plan(CLI::App& flashback, Action* chosen) {
  CLI::App* plan =
      flashback.add_subcommand("plan", "Shows what a pass would launch, and the map of tensor memory");
  plan->require_subcommand(1);
  plan->footer(kExamples);
  const auto add = [&](const char* pass, const char* meaning, Direction direction) {
    CLI::App* command = plan->add_subcommand(pass, meaning);
    command->footer(kExamples);
    const auto options = std::make_shared<ProblemOptions>(direction);
    const auto json = std::make_shared<bool>(false);
    options->add_to(*command);
    command->add_flag("--json", *json, "Prints JSON");
    command->callback([=] { *chosen = [=] { return plan_pass(*options, *json); }; });
  };
  add("backward", "dq, dk, dv of attention", Direction::kBackward);
  add("forward", "out and lse of attention", Direction::kForward);
}

}  // namespace flashback::program
