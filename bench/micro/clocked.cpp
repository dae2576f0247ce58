#include "bench/micro/clocked.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <deque>
#include <vector>

#include "attention/launch.h"
#include "device/ptx_text.h"

namespace flashback::micro {
namespace {

constexpr int kWarps = 16, kFirstComputeWarp = 4;
constexpr std::int64_t kTile = 128;

// A device whose main kernel has clocks.
class Clocked final : public Device {
 public:
  Clocked(Workbench& workbench, const std::string& entry, const KernelImage& image)
      : workbench_(workbench), entry_(entry), image_(image) {}
  Arch arch() const override { return workbench_.arch(); }
  int multiprocessors() const override { return workbench_.multiprocessors(); }
  Status encode(const TensorMapRequest& request, void* map) override {
    return workbench_.encode(request, map);
  }
  Status fill(Address address, std::uint32_t value, std::size_t words, Stream stream) override {
    return workbench_.fill(address, value, words, stream);
  }
  Status launch(const Launch& launch, Stream stream) override {
    Launch changed = launch;
    if (launch.entry == entry_) changed.image = &image_;
    return workbench_.launch(changed, stream);
  }

 private:
  Workbench& workbench_;
  const std::string& entry_;
  const KernelImage& image_;
};

// Allocations that go with it.
class Memory {
 public:
  explicit Memory(Workbench& workbench) : workbench_(workbench) {}
  ~Memory() {
    for (Address address : addresses_) workbench_.release(address);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  Status add(std::size_t bytes, std::uint32_t word, Address* address) {
    if (Status s = workbench_.allocate(bytes, address); !s.ok()) return s;
    addresses_.push_back(*address);
    return workbench_.fill(*address, word, bytes / 4, nullptr);
  }

 private:
  Workbench& workbench_;
  std::deque<Address> addresses_;
};

}  // namespace

std::string with_clocks(std::string_view ptx, std::string_view entry, std::size_t pointer_offset) {
  const std::size_t head = ptx.find(fmt::format(".entry {}(", entry));
  if (head == std::string_view::npos) return {};
  // Blocks within the body end in the same way as the body: its own end is the last one before the next
  // entry.
  const std::size_t next = ptx.find(".entry ", head + 1);
  const std::size_t body = ptx.find("\n{\n", head) + 3, end = ptx.rfind("\n}\n", next);
  std::string inside(ptx.substr(body, end - body));
  const std::string store = fmt::format(
      "ld.param.u64 %clk1, [{}_param_0+{}];\nmov.u32 %clkr1, %tid.x;\nshr.u32 %clkr2, %clkr1, 5;\n"
      "mad.wide.u32 %clk1, %clkr2, 8, %clk1;\nand.b32 %clkr1, %clkr1, 31;\nmov.u32 %clkr2, %ctaid.x;\n"
      "or.b32 %clkr1, %clkr1, %clkr2;\nsetp.eq.u32 %clkp, %clkr1, 0;\n",
      entry, pointer_offset);
  const std::string at_end = "{\n" + store +
                             "@%clkp ld.global.u64 %clk0, [%clk1+8];\nmov.u64 %clk2, %clock64;\n"
                             "sub.u64 %clk2, %clk2, %clk0;\n@%clkp st.global.u64 [%clk1+8], %clk2;\n}\nret;";
  for (std::size_t at = 0; (at = inside.find("\tret;", at)) != std::string::npos; at += at_end.size()) {
    inside.replace(at, 5, at_end);
  }
  const std::string at_begin = ".reg .b64 %clk<3>;\n.reg .b32 %clkr<3>;\n.reg .pred %clkp;\n" + store +
                               "mov.u64 %clk2, %clock64;\n@%clkp st.global.u64 [%clk1+8], %clk2;\n";
  // Before the first line that is neither a directive nor empty: the first instruction.
  std::size_t first = 0;
  while (inside[first] == '\n' || (inside[first] == '\t' && inside[first + 1] == '.')) {
    first = inside.find('\n', first) + 1;
  }
  inside.insert(first, at_begin);
  return std::string(ptx.substr(0, body)) + inside + std::string(ptx.substr(end));
}

Status cycles_per_tile(Workbench& workbench, const Problem& asked, double* cycles) {
  Problem problem = asked;
  Plan plan;
  const Target target(workbench);
  if (Status s = make_plan(target, problem, &plan); !s.ok()) return s;
  const std::string& entry = plan.kernel->main.name;
  const KernelImage* original = find_image(plan.kernel->main.image);
  std::string plain;
  if (Status s = ptx_text(original->ptx, &plain); !s.ok()) return s;
  const std::string text = with_clocks(plain, entry, offsetof(sm90::backward::Parameters, next_ticket));
  if (text.empty()) return internal_failure(fmt::format("the PTX has no entry {}", entry));
  // The driver takes text that ends with a zero in the place of a cubin.
  const KernelImage image = {original->name, original->arch, text,
                             std::as_bytes(std::span(text.c_str(), text.size() + 1))};

  const Shape& shape = problem.shape;
  const auto of_q = static_cast<std::size_t>(shape.batch * shape.seqlen_q * shape.heads * shape.head_dim * 2);
  const auto of_k =
      static_cast<std::size_t>(shape.batch * shape.seqlen_k * shape.kv_heads * shape.head_dim * 2);
  constexpr std::uint32_t kTenth = 0x3dcd3dcd;  // 0.1 twice in bf16
  Memory memory(workbench);
  Tensors& t = problem.tensors = packed_tensors(shape);
  for (Tensor* tensor : {&t.q, &t.out, &t.dout, &t.dq}) {
    if (Status s = memory.add(of_q, kTenth, &tensor->data); !s.ok()) return s;
  }
  for (Tensor* tensor : {&t.k, &t.v, &t.dk, &t.dv}) {
    if (Status s = memory.add(of_k, kTenth, &tensor->data); !s.ok()) return s;
  }
  const float lse = std::log(static_cast<float>(shape.seqlen_k));
  std::uint32_t lse_bits;
  std::copy_n(reinterpret_cast<const std::byte*>(&lse), 4, reinterpret_cast<std::byte*>(&lse_bits));
  if (Status s = memory.add(static_cast<std::size_t>(shape.batch * shape.heads * shape.seqlen_q) * 4,
                            lse_bits, &t.lse.data);
      !s.ok()) {
    return s;
  }
  constexpr std::size_t kClocks = 512;
  if (Status s = memory.add(plan.workspace.bytes + kClocks, 0, &problem.workspace); !s.ok()) return s;
  problem.workspace_bytes = plan.workspace.bytes;
  if (Status s = make_bound_plan(target, problem, &plan); !s.ok()) return s;

  Clocked device(workbench, entry, image);
  std::vector<double> runs;
  for (int run = 0; run < 5; ++run) {
    if (Status s = enqueue(device, plan, nullptr); !s.ok()) return s;
    if (Status s = workbench.wait(nullptr); !s.ok()) return s;
    std::uint64_t clocks[kWarps];
    const Address from = problem.workspace + plan.workspace.part("next_ticket").offset + 8;
    if (Status s = workbench.download(std::as_writable_bytes(std::span(clocks)), from, nullptr); !s.ok())
      return s;
    const double pairs = double(shape.seqlen_q / kTile) * double(shape.seqlen_k / kTile);
    const double visible = problem.mask == Mask::kCausal
                               ? double(shape.seqlen_q / kTile) * double(shape.seqlen_q / kTile + 1) / 2
                               : pairs;
    const double tiles = visible * double(shape.batch * shape.heads) / workbench.multiprocessors();
    runs.push_back(double(clocks[kFirstComputeWarp]) / tiles);
  }
  std::sort(runs.begin(), runs.end());
  *cycles = runs[runs.size() / 2];
  return {};
}

}  // namespace flashback::micro
