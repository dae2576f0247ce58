#include "program/device_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <span>

#include "attention/launch.h"
#include "program/failure.h"

namespace flashback::program {
namespace {

constexpr std::uint32_t kPoison = 0xffffffff;    // a NaN in fp32, and twice one in bf16 and fp16
constexpr std::size_t kMarginBytes = 64 * 1024;  // four tiles of 128 rows of 64 channels

// Device memory full of NaN, with a margin of NaN on either side.
class Buffer {
 public:
  Buffer(Workbench& workbench, std::string name, std::size_t bytes, std::size_t margin)
      : workbench_(workbench), name_(std::move(name)), bytes_(bytes), margin_(margin) {
    const std::size_t whole = std::max<std::size_t>((bytes + 3) / 4 * 4 + 2 * margin, 4);
    require(workbench.allocate(whole, &base_));
    require(workbench.fill(base_, kPoison, whole / 4, nullptr));
  }
  ~Buffer() {
    if (base_) workbench_.release(base_);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  Address address() const { return base_ + margin_; }

  template <class Element>
  void upload(const std::vector<Element>& elements) {
    require(workbench_.upload(address(), std::as_bytes(std::span(elements)), nullptr));
  }
  template <class Element>
  std::vector<Element> download() {
    std::vector<Element> elements(bytes_ / sizeof(Element));
    require(workbench_.download(std::as_writable_bytes(std::span(elements)), address(), nullptr));
    return elements;
  }

  void check_margins() {
    if (margin_ == 0) return;
    std::vector<std::byte> margin(margin_);
    for (const Address at : {base_, address() + bytes_}) {
      require(workbench_.download(margin, at, nullptr));
      const auto written =
          std::find_if(margin.begin(), margin.end(), [](std::byte b) { return b != std::byte{0xff}; });
      if (written == margin.end()) continue;
      throw Failure(kInternal,
                    fmt::format("a kernel wrote outside of {}: byte {} of the margin {} it is no longer NaN",
                                name_, written - margin.begin(), at == base_ ? "before" : "after"));
    }
  }

 private:
  Workbench& workbench_;
  std::string name_;
  std::size_t bytes_, margin_;
  Address base_ = 0;
};

// The tensors of a run, and the run itself.
class Bench {
 public:
  Bench(Workbench& workbench, bool device_checks_bounds)
      : workbench_(workbench), margin_(device_checks_bounds ? 0 : kMarginBytes) {}

  Buffer& buffer(const char* tensor, std::size_t bytes) {
    return buffers_.emplace_back(workbench_, tensor, bytes, margin_);
  }
  template <class Element>
  Address input(const char* tensor, const std::vector<Element>& elements) {
    Buffer& memory = buffer(tensor, std::as_bytes(std::span(elements)).size());
    memory.upload(elements);
    return memory.address();
  }
  // Where there is nothing the problem has no pointer.
  template <class Element>
  Address optional_input(const char* tensor, const std::vector<Element>& elements) {
    return elements.empty() ? Address{0} : input(tensor, elements);
  }

  // What both passes read.
  void bind(const DeviceInputs& inputs, Problem* problem) {
    problem->tensors = packed_tensors(problem->shape);
    problem->tensors.q.data = input("q", inputs.q);
    problem->tensors.k.data = input("k", inputs.k);
    problem->tensors.v.data = input("v", inputs.v);
    problem->tensors.sink = optional_input("sink", inputs.sink);
    const Lengths& lengths = inputs.lengths;
    problem->q_sequences = {optional_input("cu_seqlens_q", lengths.cu_seqlens_q),
                            optional_input("seqused_q", lengths.seqused_q)};
    problem->k_sequences = {optional_input("cu_seqlens_k", lengths.cu_seqlens_k),
                            optional_input("seqused_k", lengths.seqused_k)};
  }

  struct Done {
    std::vector<std::string> entries;
    double seconds = 0;
  };
  Done run(Problem problem) {
    const Target target(workbench_);
    Plan plan;
    require(make_plan(target, problem, &plan));
    problem.workspace_bytes = plan.workspace.bytes;
    problem.workspace = buffer("workspace", plan.workspace.bytes).address();
    require(make_bound_plan(target, problem, &plan));
    require(workbench_.wait(nullptr));
    require(workbench_.mark(0, nullptr));
    require(enqueue(workbench_, &plan, nullptr));
    require(workbench_.mark(1, nullptr));
    require(workbench_.wait(nullptr));
    for (Buffer& memory : buffers_) memory.check_margins();
    Done done;
    for (const PlannedLaunch& launch : plan.launches) done.entries.push_back(launch.entry->name);
    double milliseconds = 0;
    require(workbench_.elapsed(&milliseconds));
    done.seconds = milliseconds / 1000;
    return done;
  }

 private:
  Workbench& workbench_;
  const std::size_t margin_;
  std::deque<Buffer> buffers_;
};

}  // namespace

DeviceGradients run_on(Workbench& workbench, bool device_checks_bounds, Problem problem,
                       const DeviceInputs& inputs) {
  Bench bench(workbench, device_checks_bounds);
  Buffer& dq = bench.buffer("dq", inputs.q.size() * 2);
  Buffer& dk = bench.buffer("dk", inputs.k.size() * 2);
  Buffer& dv = bench.buffer("dv", inputs.v.size() * 2);
  Buffer& dsink = bench.buffer("dsink", inputs.sink.size() * 4);
  bench.bind(inputs, &problem);
  Tensors& tensors = problem.tensors;
  tensors.out.data = bench.input("out", inputs.out);
  tensors.dout.data = bench.input("dout", inputs.dout);
  tensors.lse.data = bench.input("lse", inputs.lse);
  tensors.dlse.data = bench.optional_input("dlse", inputs.dlse);
  if (tensors.sink != 0) tensors.dsink = dsink.address();
  tensors.dq.data = dq.address();
  tensors.dk.data = dk.address();
  tensors.dv.data = dv.address();
  Bench::Done done = bench.run(problem);
  return {dq.download<std::uint16_t>(), dk.download<std::uint16_t>(), dv.download<std::uint16_t>(),
          dsink.download<float>(),      std::move(done.entries),      done.seconds};
}

DeviceOutputs run_forward_on(Workbench& workbench, bool device_checks_bounds, Problem problem,
                             const DeviceInputs& inputs) {
  Bench bench(workbench, device_checks_bounds);
  const Shape& s = problem.shape;
  const auto rows = static_cast<std::size_t>(s.head_dim > 0 ? inputs.q.size() / s.head_dim : 0);
  Buffer& out = bench.buffer("out", inputs.q.size() * 2);
  Buffer& lse = bench.buffer("lse", rows * 4);
  bench.bind(inputs, &problem);
  problem.tensors.out.data = out.address();
  problem.tensors.lse.data = lse.address();
  Bench::Done done = bench.run(problem);
  return {out.download<std::uint16_t>(), lse.download<float>(), std::move(done.entries), done.seconds};
}

}  // namespace flashback::program
