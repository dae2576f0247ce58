// `flashback run backward`: one problem on a device, judged against double precision.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <chrono>
#include <memory>

#include "attention/launch.h"
#include "program/arguments.h"
#include "program/generated_inputs.h"
#include "program/judged_run.h"
#include "program/progress.h"
#include "program/run_device.h"
#include "program/run_report.h"
#include "program/safetensors.h"
#include "program/subcommand.h"

namespace flashback::program {
namespace {

using reference::Data;

constexpr const char* kExamples = R"(Examples:
  flashback run backward                                      one head, 128 rows, split/warp
  flashback run backward --heads 4 --seqlen-q 1000 --causal   ragged and masked
  flashback run backward --data heavy --seed 7 --json         outliers; JSON on standard output
  flashback run backward --variants aliased/cta,split/warp    compares variants bit for bit
  flashback run backward --cu-seqlens-q 0,100,260 --cu-seqlens-k 0,70,330 --window 64,0
  flashback run backward --input layer.safetensors --output gradients.safetensors

Input: q, k, v, dout as (batch, rows, heads, channels) in --dtype or fp32 (rounded), and optionally out, lse
(batch, heads, rows; fp32, natural logarithm), dlse (as lse), sink (heads; fp32), and int32 numbers
cu_seqlens_q, cu_seqlens_k, seqused_q, seqused_k. With cu_seqlens tensors of that side are packed: (rows,
heads, channels), and lse (heads, rows). Output: dq, dk, dv, out, lse, and dsink with a sink.)";

struct Options {
  ProblemOptions problem;
  std::optional<std::string> data, seed, threads, input, output;
  std::string device = "emulator";
  bool json = false;
};

// The options, understood; the values of the tensors are not made yet unless they come from a file.
struct Request {
  Problem problem;
  std::vector<Variant> variants;
  RunInputs inputs;
  Data data = Data::kNormal;
  std::uint64_t seed = 0;
  int threads = 0;
  std::optional<int> cuda;   // the ordinal; none: the emulator
  std::optional<Arch> arch;  // none: the device's
};

Request understand(const Options& options) {
  if (options.input && (options.data || options.seed)) {
    refuse(fmt::format("{} is {}, but the values come from --input {}; leave one of the two out",
                       options.data ? "--data" : "--seed", options.data ? *options.data : *options.seed,
                       *options.input));
  }
  Request request;
  request.variants = options.problem.variants();
  if (options.output && request.variants.size() > 1) {
    refuse(fmt::format(
        "--output is {} and --variants names {}; gradients of one variant can be written, so name one",
        *options.output, request.variants.size()));
  }
  if (options.data) request.data = parse_data(*options.data);
  if (options.seed) request.seed = std::uint64_t(parse_whole("--seed", *options.seed, 0, INT64_MAX));
  if (options.threads) request.threads = int(parse_whole("--threads", *options.threads, 1, 1024));
  request.cuda = parse_device(options.device);
  request.arch = options.problem.arch();
  if (!request.arch && !request.cuda) request.arch = Arch::kSm100;

  if (!options.input) {
    request.problem = options.problem.problem();
    request.inputs.shape = request.problem.shape;
    request.inputs.lengths = options.problem.lengths();
    return request;
  }
  if (options.problem.names_lengths() || options.problem.sink() || options.problem.dlse()) {
    refuse(
        fmt::format("lengths of sequences, --sink and --dlse come from --input {}; leave one of the two out",
                    *options.input));
  }
  request.problem = options.problem.problem();
  request.inputs = read_inputs(*options.input, options.problem.shape(), request.problem.dtype);
  request.problem.shape = request.inputs.shape;
  request.problem = with_lengths(request.problem, request.inputs.lengths);
  constexpr Address kPresent = 16;  // bound to memory later
  if (!request.inputs.tensors.sink.empty())
    request.problem.tensors.sink = request.problem.tensors.dsink = kPresent;
  if (!request.inputs.tensors.dlse.empty()) request.problem.tensors.dlse.data = kPresent;
  return request;
}

void demand_kernels(const Request& request, Arch arch) {
  for (const Variant& variant : request.variants) {
    Plan plan;
    require(make_plan(arch, in_variant(request.problem, variant), &plan));
  }
}

InputStatistics statistics_of(const RunInputs& inputs, const std::string& file) {
  const reference::Inputs& t = inputs.tensors;
  return {file,
          distribution_of(t.q),
          distribution_of(t.k),
          distribution_of(t.v),
          distribution_of(t.dout),
          range_of(inputs.lse)};
}

void write_output(SafetensorsWriter& writer, const Problem& problem, const JudgedRun& run) {
  const DeviceGradients& gradients = run.results.front().gradients;
  const Shape& s = problem.shape;
  const std::string dtype = problem.dtype == Dtype::kBf16 ? "BF16" : "F16";
  const auto shape_of = [&](const Sequences& sequences, std::vector<std::int64_t> extents) {
    if (!sequences.packed()) extents.insert(extents.begin(), s.batch);
    return extents;
  };
  const auto of_q = shape_of(problem.q_sequences, {s.seqlen_q, s.heads, s.head_dim});
  const auto of_k = shape_of(problem.k_sequences, {s.seqlen_k, s.kv_heads, s.head_dim});
  // (batch, heads, rows), and of packed sequences (heads, rows)
  const auto of_lse = shape_of(problem.q_sequences, {s.heads, s.seqlen_q});
  std::vector<OutgoingTensor> tensors = {
      {"dq", dtype, of_q, std::as_bytes(std::span(gradients.dq))},
      {"dk", dtype, of_k, std::as_bytes(std::span(gradients.dk))},
      {"dv", dtype, of_k, std::as_bytes(std::span(gradients.dv))},
      {"out", dtype, of_q, std::as_bytes(std::span(run.inputs.out))},
      {"lse", "F32", of_lse, std::as_bytes(std::span(run.inputs.lse))},
  };
  if (!gradients.dsink.empty())
    tensors.push_back({"dsink", "F32", {s.heads}, std::as_bytes(std::span(gradients.dsink))});
  require(writer.commit(tensors));
}

ExitCode run_backward(const Options& options) {
  const auto start = std::chrono::steady_clock::now();
  Request request = understand(options);
  const Problem& problem = request.problem;
  // What no kernel solves is refused before a device is asked for, unless only the device knows its
  // architecture.
  if (request.arch) demand_kernels(request, *request.arch);
  demand_memory(problem.shape);
  const std::unique_ptr<Workbench> workbench = open_device(request.cuda, request.arch, request.threads);
  if (!request.arch) demand_kernels(request, workbench->arch());
  SafetensorsWriter writer;
  if (options.output) require(writer.open(*options.output));

  if (!options.input) {
    request.inputs = generate_inputs(options.problem, problem, request.data, request.seed);
  }
  Progress progress(2 + request.variants.size());
  const auto step = [&](const std::string& what) { progress.step(what); };
  JudgedRun run = run_and_judge(*workbench, !request.cuda, problem, request.variants, request.threads, step,
                                &request.inputs);
  progress.finish();

  RunReport report;
  report.arch = workbench->arch();
  report.device = options.device;
  report.problem = problem;
  report.values =
      options.input ? *options.input : fmt::format("data {}, seed {}", name(request.data), request.seed);
  if (options.input) report.inputs = statistics_of(request.inputs, *options.input);
  report.notes = request.inputs.notes;
  if (options.output) {
    write_output(writer, problem, run);
    report.notes.push_back("the gradients are in " + *options.output);
  }
  report.results = std::move(run.results);
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
  const auto options = std::make_shared<Options>();
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
  add_run_forward(*run, chosen);
}

}  // namespace flashback::program
