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

}  // namespace

DeviceGradients run_on(Workbench& workbench, bool device_checks_bounds, Problem problem,
                       const DeviceInputs& inputs) {
  const Target target(workbench);
  std::deque<Buffer> buffers;
  const auto buffer = [&](const char* tensor, std::size_t bytes) -> Buffer& {
    return buffers.emplace_back(workbench, tensor, bytes, device_checks_bounds ? 0 : kMarginBytes);
  };
  const auto input = [&](const char* tensor, const auto& elements) {
    Buffer& memory = buffer(tensor, std::as_bytes(std::span(elements)).size());
    memory.upload(elements);
    return memory.address();
  };
  // Where there is nothing the problem has no pointer.
  const auto optional_input = [&](const char* tensor, const auto& elements) {
    return elements.empty() ? Address{0} : input(tensor, elements);
  };
  Buffer& dq = buffer("dq", inputs.q.size() * 2);
  Buffer& dk = buffer("dk", inputs.k.size() * 2);
  Buffer& dv = buffer("dv", inputs.v.size() * 2);
  Tensors& tensors = problem.tensors = packed_tensors(problem.shape);
  tensors.q.data = input("q", inputs.q);
  tensors.k.data = input("k", inputs.k);
  tensors.v.data = input("v", inputs.v);
  tensors.out.data = input("out", inputs.out);
  tensors.dout.data = input("dout", inputs.dout);
  tensors.lse.data = input("lse", inputs.lse);
  tensors.dlse.data = optional_input("dlse", inputs.dlse);
  tensors.sink = optional_input("sink", inputs.sink);
  Buffer& dsink = buffer("dsink", inputs.sink.size() * 4);
  if (tensors.sink != 0) tensors.dsink = dsink.address();
  const Lengths& lengths = inputs.lengths;
  problem.q_sequences = {optional_input("cu_seqlens_q", lengths.cu_seqlens_q),
                         optional_input("seqused_q", lengths.seqused_q)};
  problem.k_sequences = {optional_input("cu_seqlens_k", lengths.cu_seqlens_k),
                         optional_input("seqused_k", lengths.seqused_k)};
  tensors.dq.data = dq.address();
  tensors.dk.data = dk.address();
  tensors.dv.data = dv.address();
  Plan plan;
  require(make_plan(target, problem, &plan));
  problem.workspace_bytes = plan.workspace.bytes;
  problem.workspace = buffer("workspace", plan.workspace.bytes).address();

  require(make_bound_plan(target, problem, &plan));
  require(workbench.wait(nullptr));
  require(workbench.mark(0, nullptr));
  require(enqueue(workbench, plan, nullptr));
  require(workbench.mark(1, nullptr));
  require(workbench.wait(nullptr));

  DeviceGradients gradients{dq.download<std::uint16_t>(),
                            dk.download<std::uint16_t>(),
                            dv.download<std::uint16_t>(),
                            dsink.download<float>(),
                            {},
                            0};
  for (Buffer& memory : buffers) memory.check_margins();
  for (const PlannedLaunch& launch : plan.launches) gradients.entries.push_back(launch.entry->name);
  double milliseconds = 0;
  require(workbench.elapsed(&milliseconds));
  gradients.seconds = milliseconds / 1000;
  return gradients;
}

}  // namespace flashback::program
