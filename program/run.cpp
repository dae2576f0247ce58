// `flashback run backward`: one problem on a device, judged against double precision.
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>

#include "attention/launch.h"
#include "attention/reference/reference.h"
#include "attention/reference/rounding.h"
#include "program/arguments.h"
#include "program/progress.h"
#include "program/run_inputs.h"
#include "program/run_report.h"
#include "program/safetensors.h"
#include "program/subcommand.h"

namespace flashback::program {
namespace {

using reference::Answer;
using reference::Data;

constexpr const char* kExamples = R"(Examples:
  flashback run backward                                      one head, 128 rows, split/warp
  flashback run backward --heads 4 --seqlen-q 1000 --causal   ragged and masked
  flashback run backward --data heavy --seed 7 --json         outliers; JSON on standard output
  flashback run backward --variants aliased/cta,split/warp    compares variants bit for bit
  flashback run backward --input layer.safetensors --output gradients.safetensors

Input: q, k, v, dout as (batch, rows, heads, channels) in --dtype or fp32 (rounded), and optionally out and
lse (batch, heads, rows; fp32, natural logarithm). Output: dq, dk, dv, out, lse.)";

struct RunOptions {
  ProblemOptions problem;
  std::optional<std::string> data, seed, threads, input, output;
  std::string device = "emulator";
  bool json = false;
};

// The options, understood.
struct Request {
  std::vector<Variant> variants;
  Data data = Data::kNormal;
  std::uint64_t seed = 0;
  int threads = 0;
  std::optional<int> cuda;  // the ordinal; none: the emulator
};

std::optional<int> parse_device(const std::string& text) {
  if (text == "emulator") return {};
  if (text.starts_with("cuda:"))
    return int(parse_whole("the number in --device cuda:N", text.substr(5), 0, 1023));
  refuse_word("--device", text, {"emulator", "cuda:N with a device number N"});
}

Request understand(const RunOptions& options) {
  Request request;
  request.cuda = parse_device(options.device);
  if (options.data) {
    request.data =
        parse_choice("--data", *options.data,
                     {Data::kNormal, Data::kLow, Data::kHigh, Data::kEqual, Data::kZero, Data::kHeavy});
  }
  if (options.seed) request.seed = std::uint64_t(parse_whole("--seed", *options.seed, 0, INT64_MAX));
  if (options.threads) request.threads = int(parse_whole("--threads", *options.threads, 1, 1024));
  request.variants = options.problem.variants();
  if (options.input && (options.data || options.seed)) {
    const char* which = options.data ? "--data" : "--seed";
    refuse(fmt::format("{} is {}, but the values come from --input {}; leave one of the two out", which,
                       options.data ? *options.data : *options.seed, *options.input));
  }
  if (options.output && request.variants.size() > 1) {
    refuse(fmt::format(
        "--output is {} and --variants names {}; gradients of one variant can be written, so name one",
        *options.output, request.variants.size()));
  }
  return request;
}

std::unique_ptr<Workbench> open_device(const Request& request, std::optional<Arch> arch) {
  std::unique_ptr<Workbench> workbench;
  const Status status = request.cuda
                            ? open_cuda(*request.cuda, &workbench)
                            : open_emulator(arch.value_or(Arch::kSm100), request.threads, &workbench);
  if (!status.ok())
    refuse(status.sentence());  // whatever the reason: what was asked for is not to be had here
  if (arch && *arch != workbench->arch()) {
    refuse(fmt::format("--arch is {}, but the device cuda:{} is {}; leave --arch out", name(*arch),
                       *request.cuda, name(workbench->arch())));
  }
  return workbench;
}

std::vector<float> to_floats(const std::vector<double>& values) {
  return {values.begin(), values.end()};
}

double largest_difference(const std::vector<float>& a, const std::vector<double>& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] != b[i]) largest = std::max(largest, std::fabs(a[i] - b[i]));
  }
  return largest;
}

// The file's out and lse, or what they should be.
void complete_forward(const Answer<double>& exact, Dtype dtype, RunInputs* inputs) {
  if (inputs->out.empty()) {
    inputs->out = to_floats(exact.out);
    for (float& value : inputs->out) value = reference::round_to(dtype, value);
  } else {
    inputs->notes.push_back(
        fmt::format("out comes from the file and differs from double precision by at most {:.3g}",
                    largest_difference(inputs->out, exact.out)));
  }
  if (inputs->lse.empty()) {
    inputs->lse = to_floats(exact.lse);
  } else {
    inputs->notes.push_back(
        fmt::format("lse comes from the file and differs from double precision by at most {:.3g}",
                    largest_difference(inputs->lse, exact.lse)));
  }
}

DeviceInputs bits_of(const RunInputs& inputs, Dtype dtype) {
  const auto bits = [&](const std::vector<float>& values) { return reference::to_bits(dtype, values); };
  return {bits(inputs.tensors.q), bits(inputs.tensors.k),    bits(inputs.tensors.v),
          bits(inputs.out),       bits(inputs.tensors.dout), inputs.lse};
}

InputStatistics statistics_of(const RunInputs& inputs, const std::string& file) {
  return {file,
          distribution_of(inputs.tensors.q),
          distribution_of(inputs.tensors.k),
          distribution_of(inputs.tensors.v),
          distribution_of(inputs.tensors.dout),
          range_of(inputs.lse)};
}

VariantResult judge_gradients(const Variant& variant, DeviceGradients gradients, const Answer<double>& exact,
                              const Answer<float>& sixteen_bit, const Problem& problem) {
  const Shape& shape = problem.shape;
  const Extent of_q = {shape.batch, shape.seqlen_q, shape.heads, shape.head_dim};
  const Extent of_k = {shape.batch, shape.seqlen_k, shape.kv_heads, shape.head_dim};
  const auto verdict = [&](const auto& bits, const auto& exact, const auto& sixteen_bit,
                           const Extent& extent) {
    return judge(reference::from_bits(problem.dtype, bits), exact, sixteen_bit, extent, problem.dtype);
  };
  VariantResult result{variant, std::move(gradients), {}, {}, {}};
  result.dq = verdict(result.gradients.dq, exact.dq, sixteen_bit.dq, of_q);
  result.dk = verdict(result.gradients.dk, exact.dk, sixteen_bit.dk, of_k);
  result.dv = verdict(result.gradients.dv, exact.dv, sixteen_bit.dv, of_k);
  return result;
}

void write_output(SafetensorsWriter& writer, const Problem& problem, const DeviceInputs& inputs,
                  const DeviceGradients& gradients) {
  const Shape& s = problem.shape;
  const std::string dtype = problem.dtype == Dtype::kBf16 ? "BF16" : "F16";
  const std::vector<std::int64_t> of_q = {s.batch, s.seqlen_q, s.heads, s.head_dim};
  const std::vector<std::int64_t> of_k = {s.batch, s.seqlen_k, s.kv_heads, s.head_dim};
  const OutgoingTensor tensors[] = {
      {"dq", dtype, of_q, std::as_bytes(std::span(gradients.dq))},
      {"dk", dtype, of_k, std::as_bytes(std::span(gradients.dk))},
      {"dv", dtype, of_k, std::as_bytes(std::span(gradients.dv))},
      {"out", dtype, of_q, std::as_bytes(std::span(inputs.out))},
      {"lse", "F32", {s.batch, s.heads, s.seqlen_q}, std::as_bytes(std::span(inputs.lse))},
  };
  require(writer.commit(tensors));
}

// Inputs, references, 16-bit copies and device memory together take at most 64 bytes for each element of q
// and k.
void demand_memory(const Shape& shape) {
  const double elements =
      double(shape.batch) * double(shape.head_dim) *
      (double(shape.seqlen_q) * double(shape.heads) + double(shape.seqlen_k) * double(shape.kv_heads));
  const double needed = 64 * elements,
               present = double(sysconf(_SC_PHYS_PAGES)) * double(sysconf(_SC_PAGESIZE));
  if (needed <= present) return;
  refuse(fmt::format(
      "{} x {} rows of {} heads in {} batches need about {:.3g} GiB with their references; this machine has "
      "{:.3g} GiB",
      shape.seqlen_q, shape.seqlen_k, shape.heads, shape.batch, needed / 0x1p30, present / 0x1p30));
}

void demand_kernels(const std::vector<Problem>& problems, Arch arch) {
  for (const Problem& problem : problems) {
    Plan plan;
    require(make_plan(arch, problem, &plan));
  }
}

ExitCode run_backward(const RunOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  const Request request = understand(options);
  const Dtype dtype = options.problem.dtype();
  RunInputs inputs;
  inputs.shape = with_defaults(options.problem.shape());
  if (options.input) inputs = read_inputs(*options.input, options.problem.shape(), dtype);
  Problem problem;
  problem.dtype = dtype;
  problem.shape = inputs.shape;
  problem.mask = options.problem.mask();
  problem.scale = options.problem.scale();

  demand_memory(problem.shape);
  std::vector<Problem> problems;
  for (const Variant& variant : request.variants) {
    problem.tensor_memory = variant.tensor_memory;
    problem.signal = variant.signal;
    problems.push_back(problem);
  }
  // What no kernel solves is refused before a device is asked for, unless only the device knows its
  // architecture.
  const std::optional<Arch> arch =
      request.cuda ? options.problem.arch() : options.problem.arch().value_or(Arch::kSm100);
  if (arch) demand_kernels(problems, *arch);
  const std::unique_ptr<Workbench> workbench = open_device(request, arch);
  if (!arch) demand_kernels(problems, workbench->arch());
  SafetensorsWriter writer;
  if (options.output) require(writer.open(*options.output));

  Progress progress(2 + request.variants.size());
  const double scale = effective_scale(problem);
  if (!options.input)
    inputs.tensors = reference::make_inputs(request.data, inputs.shape, dtype, scale, request.seed);
  const reference::Question question{inputs.shape, problem.mask, scale};
  progress.step("reference, double precision");
  const Answer<double> exact = reference::exact(question, inputs.tensors, request.threads);
  progress.step("reference, 16 bit");
  const Answer<float> sixteen_bit = reference::sixteen_bit(question, inputs.tensors, dtype, request.threads);
  complete_forward(exact, dtype, &inputs);

  RunReport report;
  report.arch = workbench->arch();
  report.device = options.device;
  report.problem = problem;
  const DeviceInputs device_inputs = bits_of(inputs, dtype);
  for (std::size_t i = 0; i < problems.size(); ++i) {
    progress.step(fmt::format("{} on {}", name(request.variants[i]), options.device));
    DeviceGradients gradients = run_on(*workbench, report.emulated(), problems[i], device_inputs);
    report.results.push_back(
        judge_gradients(request.variants[i], std::move(gradients), exact, sixteen_bit, problems[i]));
  }
  progress.finish();
  if (options.output) write_output(writer, problem, device_inputs, report.results.front().gradients);

  report.values =
      options.input ? *options.input : fmt::format("data {}, seed {}", name(request.data), request.seed);
  if (options.input) report.inputs = statistics_of(inputs, *options.input);
  report.notes = inputs.notes;
  if (options.output) report.notes.push_back("the gradients are in " + *options.output);
  report.wall_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (options.json) {
    fmt::print("{}\n", to_json(report).dump(2));
  } else {
    for (const std::string& note : report.notes) fmt::print(stderr, "flashback: {}.\n", note);
    fmt::print("{}", to_text(report));
  }
  return report.ok() ? kRight : kWrong;
}

}  // namespace

void add_run(CLI::App& flashback, Action* chosen) {
  CLI::App* run =
      flashback.add_subcommand("run", "Runs a pass on a device and judges it against double precision");
  run->require_subcommand(1);
  run->footer(kExamples);
  CLI::App* backward = run->add_subcommand("backward", "dq, dk, dv of attention");
  backward->footer(kExamples);
  const auto options = std::make_shared<RunOptions>();
  options->problem.add_to(*backward);
  const auto add = [&](const char* group, const char* name, const char* type, auto& value,
                       const char* meaning) {
    backward->add_option(name, value, meaning)->type_name(type)->group(group);
  };
  add("Values", "--data", "WORD", options->data, "normal, low, high, equal, zero or heavy [normal]");
  add("Values", "--seed", "N", options->seed, "Of the generated values [0]");
  add("Values", "--input", "FILE", options->input, "Reads the values from a safetensors file");
  add("Values", "--output", "FILE", options->output, "Writes the gradients to a safetensors file");
  add("Where", "--device", "WORD", options->device, "emulator or cuda:N [emulator]");
  add("Where", "--threads", "N", options->threads, "Host threads [one for each core]");
  backward->add_flag("--json", options->json, "Prints JSON");
  backward->callback([=] { *chosen = [=] { return run_backward(*options); }; });
}

}  // namespace flashback::program
