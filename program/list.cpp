// `flashback list`: the kernel table.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <nlohmann/json.hpp>

#include <utility>

#include "attention/kernel_table.h"
#include "program/subcommand.h"

namespace flashback::program {
namespace {

// A kernel without variants has a dash for them, and no key in JSON.
template <typename Field>
std::string_view word(const std::optional<Field>& field) {
  return field ? name(*field) : "-";
}

using Json = nlohmann::ordered_json;

std::string text_of_table() {
  std::string text =
      fmt::format("{:<5} {:<8} {:>8} {:<5} {:<6} {:<7} {:<6} {:>9} {:>7} {:>8}  {}\n", "arch", "pass",
                  "head dim", "dtype", "mask", "tmem", "signal", "tile", "threads", "shared", "entry");
  for (const Kernel& kernel : kernel_table()) {
    text += fmt::format("{:<5} {:<8} {:>8} {:<5} {:<6} {:<7} {:<6} {:>9} {:>7} {:>8}  {}\n",
                        name(kernel.arch), name(kernel.direction), kernel.head_dim, name(kernel.dtype),
                        name(kernel.mask), word(kernel.tensor_memory), word(kernel.signal),
                        fmt::format("{} x {}", kernel.tile_q, kernel.tile_k), kernel.main.threads,
                        kernel.main.shared_bytes, kernel.main.name);
  }
  return text;
}

Json features_of(const Kernel& kernel) {
  const Features& f = kernel.features;
  const std::pair<const char*, bool> all[] = {
      {"grouped_queries", f.grouped_queries},
      {"empty", f.empty},
      {"ragged", f.ragged},
      {"dlse", f.dlse},
      {"sink", f.sink},
      {"fp32_gradients", f.fp32_gradients},
      {"deterministic", f.deterministic},
  };
  Json names = Json::array();
  for (const auto& [name, has] : all) {
    if (has) names.push_back(name);
  }
  return names;
}

Json json_of_table() {
  Json kernels = Json::array();
  for (const Kernel& kernel : kernel_table()) {
    Json json = {{"arch", name(kernel.arch)},   {"direction", name(kernel.direction)},
                 {"head_dim", kernel.head_dim}, {"least_head_dim", kernel.least_head_dim},
                 {"dtype", name(kernel.dtype)}, {"mask", name(kernel.mask)}};
    if (kernel.tensor_memory) json["tmem"] = name(*kernel.tensor_memory);
    if (kernel.signal) json["signal"] = name(*kernel.signal);
    json["features"] = features_of(kernel);
    json["tile"] = {kernel.tile_q, kernel.tile_k};
    json["threads"] = kernel.main.threads;
    json["shared_bytes"] = kernel.main.shared_bytes;
    const std::pair<const char*, const Entry&> entries[] = {
        {"schedule", kernel.schedule},       {"main", kernel.main},
        {"preprocess", kernel.preprocess},   {"sink", kernel.sink},
        {"postprocess", kernel.postprocess}, {"unseen", kernel.unseen}};
    for (const auto& [step, entry] : entries) {
      if (!entry.name.empty()) json["entries"][step] = entry.name;
    }
    kernels.push_back(std::move(json));
  }
  return {{"kernels", kernels}};
}

}  // namespace

void add_list(CLI::App& flashback, Action* chosen) {
  CLI::App* list = flashback.add_subcommand("list", "The kernels of this build");
  list->footer("Examples:\n  flashback list\n  flashback list --json | jq '.kernels[].entries.main'");
  const auto json = std::make_shared<bool>(false);
  list->add_flag("--json", *json, "Prints JSON");
  list->callback([=] {
    *chosen = [=] {
      fmt::print("{}", *json ? json_of_table().dump(2) + "\n" : text_of_table());
      return kRight;
    };
  });
}

}  // namespace flashback::program
