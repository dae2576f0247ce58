#include "bench/clocks/pass.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "bench/median.h"
#include "device/ptx_text.h"
#include "kernels/sm90/backward/config.h"

namespace flashback::clocks {
namespace {

constexpr std::size_t kRows = 2048;  // of a warp
constexpr std::int64_t kTile = 128;

}  // namespace

// The device, but that the main kernel is another and is told where its notes go.
class ClockedPass::Clocked final : public Device {
 public:
  explicit Clocked(ClockedPass& pass) : pass_(pass), workbench_(*pass.workbench_) {}
  Arch arch() const override { return workbench_.arch(); }
  int multiprocessors() const override { return workbench_.multiprocessors(); }
  Status encode(const TensorMapRequest& request, void* map) override {
    return workbench_.encode(request, map);
  }
  Status fill(Address address, std::uint32_t value, std::size_t words, Stream stream) override {
    return workbench_.fill(address, value, words, stream);
  }
  Status launch(const Launch& launch, Stream stream) override {
    if (launch.entry != pass_.entry_) return workbench_.launch(launch, stream);
    const std::size_t notes_at = pass_.kernel_.notes_at;
    alignas(64) std::byte parameters[4096] = {};
    std::copy(launch.parameters.begin(), launch.parameters.end(), parameters);
    const auto notes = std::as_bytes(std::span(&pass_.notes_, 1));
    std::copy(notes.begin(), notes.end(), parameters + notes_at);
    Launch changed = launch;
    changed.image = &pass_.image_;
    changed.parameters = std::span(parameters, notes_at + notes.size());
    return workbench_.launch(changed, stream);
  }

 private:
  ClockedPass& pass_;
  Workbench& workbench_;
};

ClockedPass::~ClockedPass() {
  for (Address address : memory_) workbench_->release(address);
}

Status ClockedPass::add(std::size_t bytes, std::uint32_t word, Address* address) {
  if (Status s = workbench_->allocate(bytes, address); !s.ok()) return s;
  memory_.push_back(*address);
  return workbench_->fill(*address, word, bytes / 4, nullptr);
}

Status ClockedPass::prepare(const Problem& problem, Where where, std::string_view clock) {
  problem_ = problem;
  const Target target(*workbench_);
  if (Status s = make_plan(target, problem_, &plan_); !s.ok()) return s;
  const auto main = std::find_if(plan_.launches.begin(), plan_.launches.end(),
                                 [](const PlannedLaunch& launch) { return launch.step == "main"; });
  if (main == plan_.launches.end()) return internal_failure("the plan has no main kernel");
  entry_ = main->entry->name;
  warps_ = static_cast<int>(main->entry->threads / 32);
  const KernelImage* const original = main->entry->image;
  std::string text;
  if (Status s = ptx_text(original->ptx, &text); !s.ok()) return s;
  kernel_ = with_clocks(text, entry_, warps_, where);
  if (kernel_.ptx.empty()) return internal_failure(fmt::format("the PTX has no entry {}", entry_));
  for (std::size_t at = 0; (at = kernel_.ptx.find("%clock", at)) != std::string::npos; at += clock.size())
    kernel_.ptx.replace(at, 6, clock);
  // The driver takes text that ends with a zero in the place of a cubin.
  image_ = {original->name, original->arch, kernel_.ptx,
            std::as_bytes(std::span(kernel_.ptx.c_str(), kernel_.ptx.size() + 1))};

  const Shape& shape = problem_.shape;
  const auto of_q = static_cast<std::size_t>(shape.batch * shape.seqlen_q * shape.heads * shape.head_dim * 2);
  const auto of_k =
      static_cast<std::size_t>(shape.batch * shape.seqlen_k * shape.kv_heads * shape.head_dim * 2);
  const std::uint32_t tenth = problem_.dtype == Dtype::kBf16 ? 0x3dcd3dcd : 0x2e662e66;  // twice
  Tensors& t = problem_.tensors = packed_tensors(shape);
  for (Tensor* tensor : {&t.q, &t.out, &t.dout, &t.dq}) {
    if (Status s = add(of_q, tenth, &tensor->data); !s.ok()) return s;
  }
  for (Tensor* tensor : {&t.k, &t.v, &t.dk, &t.dv}) {
    if (Status s = add(of_k, tenth, &tensor->data); !s.ok()) return s;
  }
  const auto rows = static_cast<std::size_t>(shape.batch * shape.heads * shape.seqlen_q);
  const auto lse = std::bit_cast<std::uint32_t>(std::log(static_cast<float>(shape.seqlen_k)));
  if (Status s = add(rows * 4, lse, &t.lse.data); !s.ok()) return s;
  if (Status s = add((plan_.workspace.bytes + 3) / 4 * 4, 0, &problem_.workspace); !s.ok()) return s;
  problem_.workspace_bytes = plan_.workspace.bytes;

  if (Status s = add(warps_ * 2 * sizeof(kNoClock), kNoClock, &notes_.ends); !s.ok()) return s;
  if (kernel_.row_words() == 0) return make_bound_plan(target, problem_, &plan_);
  // The kernel counts in the lower half of an address: twice the room has a begin from which that suffices.
  const std::size_t bytes = kRows * static_cast<std::size_t>(warps_) * kernel_.row_words() * sizeof(kNoClock);
  const std::size_t step = std::bit_ceil(bytes);
  Address room = 0;
  if (Status s = add(2 * step, 0, &room); !s.ok()) return s;
  notes_.begin = (room + step - 1) / step * step;
  notes_.end = notes_.begin + bytes;
  return make_bound_plan(target, problem_, &plan_);
}

Status ClockedPass::run(std::vector<std::vector<Stamp>>* stamps) {
  const auto warps = static_cast<std::size_t>(warps_);
  std::vector<std::uint32_t> ends(2 * warps), rows((notes_.end - notes_.begin) / sizeof(kNoClock));
  const auto clear = [&](const std::vector<std::uint32_t>& of, Address at) {
    return of.empty() ? Status{} : workbench_->fill(at, kNoClock, of.size(), nullptr);
  };
  if (Status s = clear(ends, notes_.ends); !s.ok()) return s;
  if (Status s = clear(rows, notes_.begin); !s.ok()) return s;
  Clocked device(*this);
  if (Status s = enqueue(device, &plan_, nullptr); !s.ok()) return s;
  const auto download = [&](std::vector<std::uint32_t>& to, Address from) {
    return to.empty() ? Status{} : workbench_->download(std::as_writable_bytes(std::span(to)), from, nullptr);
  };
  if (Status s = download(ends, notes_.ends); !s.ok()) return s;
  if (Status s = download(rows, notes_.begin); !s.ok()) return s;
  if (Status s = workbench_->wait(nullptr); !s.ok()) return s;

  // A clock of 32 bits goes round in two seconds.
  const auto since_begin = [&](std::uint32_t clock) {
    return double(static_cast<std::int32_t>(clock - ends[0]));
  };
  const std::size_t words = kernel_.row_words(), places = kernel_.places.size() - 2;
  stamps->assign(warps, {});
  double first = 0;
  for (std::size_t w = 0; w < warps; ++w) {
    std::vector<Stamp>& of_warp = (*stamps)[w];
    if (ends[2 * w] == kNoClock || ends[2 * w + 1] == kNoClock)
      return internal_failure(fmt::format("warp {} of {} noted no begin or no end", w, entry_));
    of_warp.push_back({since_begin(ends[2 * w]), kBegin});
    for (std::size_t row = w; row < kRows * warps && words > 0; row += warps) {
      for (std::uint32_t place = 0; place < places; ++place) {
        const std::uint32_t noted = rows[row * words + place];
        if (noted != kNoClock) of_warp.push_back({since_begin(noted), place + 2});
      }
    }
    of_warp.push_back({since_begin(ends[2 * w + 1]), kEnd});
    std::stable_sort(of_warp.begin(), of_warp.end(),
                     [](const Stamp& x, const Stamp& y) { return x.cycle < y.cycle; });
    first = std::min(first, of_warp.front().cycle);
  }
  for (std::vector<Stamp>& warp : *stamps) {
    for (Stamp& stamp : warp) stamp.cycle -= first;
  }
  return {};
}

Status cycles_per_tile(int cuda_ordinal, const Problem& problem, double* cycles) {
  std::unique_ptr<Workbench> workbench;
  if (Status s = open_cuda(cuda_ordinal, &workbench); !s.ok()) return s;
  ClockedPass pass(std::move(workbench));
  if (Status s = pass.prepare(problem, Where::kEnds); !s.ok()) return s;
  const Shape& shape = problem.shape;
  const double across = double(shape.seqlen_q / kTile), down = double(shape.seqlen_k / kTile);
  const double visible = problem.mask == Mask::kCausal ? across * (across + 1) / 2 : across * down;
  const double tiles = visible * double(shape.batch * shape.heads) / pass.workbench().multiprocessors();
  std::vector<double> runs;
  for (int run = 0; run < 5; ++run) {
    std::vector<std::vector<Stamp>> stamps;
    if (Status s = pass.run(&stamps); !s.ok()) return s;
    const std::vector<Stamp>& compute = stamps[sm90::backward::kFirstComputeWarp];
    runs.push_back((compute.back().cycle - compute.front().cycle) / tiles);
  }
  *cycles = bench::median(runs);
  return {};
}

}  // namespace flashback::clocks
