#include "program/run_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

namespace flashback::program {
namespace {

using Json = nlohmann::ordered_json;
using Bits = std::vector<std::uint16_t>;

std::vector<std::pair<const char*, Verdict>> verdicts(const VariantResult& result) {
  std::vector<std::pair<const char*, Verdict>> list = {
      {"dq", result.dq}, {"dk", result.dk}, {"dv", result.dv}};
  if (result.dsink) list.emplace_back("dsink", *result.dsink);
  return list;
}

constexpr std::array<std::pair<const char*, Bits DeviceGradients::*>, 3> kGradients = {
    {{"dq", &DeviceGradients::dq}, {"dk", &DeviceGradients::dk}, {"dv", &DeviceGradients::dv}}};
constexpr std::array<std::pair<const char*, Distribution InputStatistics::*>, 4> kInputs = {
    {{"q", &InputStatistics::q},
     {"k", &InputStatistics::k},
     {"v", &InputStatistics::v},
     {"dout", &InputStatistics::dout}}};

bool identical(const std::vector<VariantResult>& results, Bits DeviceGradients::*gradient) {
  return std::all_of(results.begin(), results.end(), [&](const VariantResult& result) {
    return result.gradients.*gradient == results.front().gradients.*gradient;
  });
}

Json gradients_json(const VariantResult& result) {
  Json json;
  for (const auto& [gradient, verdict] : verdicts(result)) {
    json[gradient] = {{"max_abs", verdict.max_abs},
                      {"rel", verdict.rel},
                      {"limit", verdict.limit},
                      {"block_ratio", verdict.block_ratio},
                      {"ok", verdict.ok}};
    if (!verdict.ok) json[gradient]["sentence"] = verdict.sentence;
  }
  json["ok"] = result.ok();
  return json;
}

Json inputs_json(const InputStatistics& inputs) {
  Json json = {{"file", inputs.file}};
  for (const auto& [tensor, member] : kInputs) {
    json[tensor] = {{"max", (inputs.*member).max_abs}, {"kurtosis", (inputs.*member).kurtosis}};
  }
  json["lse"] = {{"min", inputs.lse.least}, {"max", inputs.lse.most}};
  return json;
}

std::string inputs_text(const InputStatistics& inputs) {
  std::string text = fmt::format("inputs    {:<8} {:>12}  {:>12}\n", "", "max |x|", "kurtosis");
  for (const auto& [tensor, member] : kInputs) {
    text += fmt::format("          {:<8} {:>12.4g}  {:>12.4g}\n", tensor, (inputs.*member).max_abs,
                        (inputs.*member).kurtosis);
  }
  text += fmt::format("          lse from {:.4g} to {:.4g}", inputs.lse.least, inputs.lse.most);
  if (inputs.lse.infinite > 0) text += fmt::format("; {} rows see no key", inputs.lse.infinite);
  return text + "\n";
}

// Only Blackwell's kernel has variants.
bool has_variants(Arch arch) {
  return arch == Arch::kSm100;
}

std::string result_text(const VariantResult& result, Arch arch) {
  const std::string variant = has_variants(arch) ? name(result.variant) + ": " : "";
  std::string text = fmt::format("\n{}{}\n", variant, fmt::join(result.gradients.entries, ", "));
  text += fmt::format("          {:>14}  {:>14}  {:>14}  ok\n", "max abs error", "limit", "relative error");
  for (const auto& [gradient, verdict] : verdicts(result)) {
    text += fmt::format("  {:<6}  {:>14.4g}  {:>14.4g}  {:>14.4g}  {}\n", gradient, verdict.max_abs,
                        verdict.limit, verdict.rel, verdict.ok ? "yes" : "NO");
  }
  for (const auto& [gradient, verdict] : verdicts(result)) {
    if (!verdict.ok) text += fmt::format("  {}: {}\n", gradient, verdict.sentence);
  }
  return text;
}

std::string comparison_text(const RunReport& report) {
  std::string same, different;
  for (const auto& [gradient, member] : kGradients) {
    std::string& list = identical(report.results, member) ? same : different;
    list += fmt::format("{}{}", list.empty() ? "" : ", ", gradient);
  }
  std::string text = "\n";
  if (!same.empty()) text += fmt::format("{} of the variants agree bit for bit", same);
  if (!same.empty() && !different.empty()) text += "; ";
  if (!different.empty()) text += fmt::format("{} of the variants differ", different);
  if (!report.emulated()) return text + ".\n";
  return text +
         " in the emulator's fixed order.\n(On a GPU agreement holds for dq only in deterministic mode.)\n";
}

}  // namespace

bool RunReport::ok() const {
  return std::all_of(results.begin(), results.end(), [](const VariantResult& result) { return result.ok(); });
}

Json to_json(const Shape& shape) {
  return {{"batch", shape.batch},       {"heads", shape.heads},       {"kv_heads", shape.kv_heads},
          {"seqlen_q", shape.seqlen_q}, {"seqlen_k", shape.seqlen_k}, {"head_dim", shape.head_dim}};
}

Json to_json(const RunReport& report) {
  Json json = {{"arch", name(report.arch)}, {"device", report.device}};
  const bool single = report.results.size() == 1;
  if (single) json["entries"] = report.results.front().gradients.entries;
  json["shape"] = to_json(report.problem.shape);
  json["dtype"] = name(report.problem.dtype);
  json["causal"] = report.problem.mask == Mask::kCausal;
  json["window"] = {report.problem.mask.left, report.problem.mask.right};
  json["packed"] = report.problem.q_sequences.packed() || report.problem.k_sequences.packed();
  json["scale"] = effective_scale(report.problem);
  double seconds = 0;
  Json variants = Json::array();
  for (const VariantResult& result : report.results) {
    Json variant = Json::object();
    if (has_variants(report.arch)) {
      variant = {{"tmem", name(result.variant.tensor_memory)}, {"signal", name(result.variant.signal)}};
    }
    if (!single) variant["entries"] = result.gradients.entries;
    variant.update(gradients_json(result));
    if (!single) variant["seconds"] = result.gradients.seconds;
    seconds += result.gradients.seconds;
    variants.push_back(std::move(variant));
  }
  if (single) {
    json.update(variants[0]);
  } else {
    json["variants"] = std::move(variants);
    for (const auto& [gradient, member] : kGradients)
      json["identical"][gradient] = identical(report.results, member);
    json["ok"] = report.ok();
  }
  json["word"] = report.emulated() ? "emulated" : "measured";
  json["seconds"] = seconds;
  json["wall_seconds"] = report.wall_seconds;
  if (report.inputs) json["inputs"] = inputs_json(*report.inputs);
  json["notes"] = report.notes;
  return json;
}

std::string to_text(const Problem& problem) {
  const Shape& shape = problem.shape;
  return fmt::format("batch {}, heads {}, kv heads {}, seqlen {} x {}, head dim {}, {}, {}, scale {:.6g}",
                     shape.batch, shape.heads, shape.kv_heads, shape.seqlen_q, shape.seqlen_k, shape.head_dim,
                     name(problem.dtype), name(problem.mask), effective_scale(problem));
}

std::string to_text(const RunReport& report) {
  std::string text = fmt::format("backward  {}\nvalues    {}\n", to_text(report.problem), report.values);
  if (report.inputs) text += inputs_text(*report.inputs);
  text += fmt::format("device    {}, {}: every number below is {}\n", report.device, name(report.arch),
                      report.emulated() ? "emulated" : "measured");
  double seconds = 0;
  for (const VariantResult& result : report.results) {
    text += result_text(result, report.arch);
    seconds += result.gradients.seconds;
  }
  if (report.results.size() > 1) text += comparison_text(report);
  return text + fmt::format("\n{}; kernels {:.3g} s{}, with references {:.3g} s.\n",
                            report.ok() ? "All gradients are right" : "A GRADIENT IS WRONG", seconds,
                            report.emulated() ? " of wall time" : "", report.wall_seconds);
}

}  // namespace flashback::program
