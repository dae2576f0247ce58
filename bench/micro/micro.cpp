#include "bench/micro/micro.h"

#include <fmt/format.h>

#include <algorithm>

#include "bench/micro/images.h"
#include "bench/micro/parameters.h"

namespace flashback::micro {
namespace {

constexpr double kChainLatency = 4;  // cycles of a dependent fp32 addition
constexpr int kRuns = 5;

enum class Unit { kCycles, kBytesPerCycle, kTerabytes };

struct Probe {
  const char* entry;
  const char* what;
  std::uint32_t threads;
  bool everywhere;        // on every multiprocessor, else on one
  std::uint32_t buffers;  // of kCopyBytes, of dynamic shared memory
  int n;                  // repetitions on a GPU
  double operations;      // of a repetition, per what is counted
  Unit unit = Unit::kCycles;
  const char* constant = "";
};

constexpr Probe kProbes[] = {
    {"probe_convert", "cvt.rn.bf16x2.f32, a warp instruction on its pipe", 128, false, 0, 20000,
     kRounds* kUnrolled, Unit::kCycles, "convert"},
    {"probe_exponential", "ex2.approx.ftz.f32, the same", 128, false, 0, 20000, kRounds* kUnrolled,
     Unit::kCycles, "special"},
    {"probe_shuffle", "shfl.sync, the same", 128, false, 0, 20000, kRounds* kUnrolled, Unit::kCycles,
     "transferred"},
    {"probe_broadcast_load", "ld.shared.v4 of one address by a warp, on the port of the SM", 128, false, 0,
     20000, 16 * 4, Unit::kCycles, "register_bytes"},
    {"probe_load", "ld.shared.v4 without conflicts, the same", 128, false, 0, 20000, 16 * 4},
    {"probe_barrier", "bar.sync of 4 warps, from the last arrival", 128, false, 0, 20000, 16, Unit::kCycles,
     "barrier"},
    {"probe_barrier", "bar.sync of 8 warps", 256, false, 0, 20000, 16, Unit::kCycles, "barrier_warp"},
    {"probe_token", "mbarrier: arrival to waiter, with what is around", 64, false, 0, 20000, 2, Unit::kCycles,
     "arrive + wake"},
    {"probe_fence", "st.shared.v4 and fence.proxy.async", 32, false, 0, 20000, 16, Unit::kCycles, "fence"},
    {"probe_copy", "cp.async.bulk of 16 KB from L2, alone", 32, false, 1, 4000, 1, Unit::kCycles,
     "copy_latency"},
    {"probe_copies", "the same on every SM, 4 in flight: from request to arrival", 32, true, 4, 4000, 0.25,
     Unit::kCycles, "copy_latency"},
    {"probe_copies", "the same: bytes into an SM", 32, true, 4, 4000, kCopyBytes, Unit::kBytesPerCycle,
     "copy_bytes"},
    {"probe_reductions", "cp.reduce.async.bulk.add.f32 of 16 KB on every SM: bytes out of an SM", 128, true,
     1, 4000, kCopyBytes, Unit::kBytesPerCycle, "reduce_bytes"},
    {"probe_reductions", "the same, of the chip", 128, true, 1, 4000, kCopyBytes, Unit::kTerabytes},
    {"probe_reductions", "the same on one SM alone: bytes out of it", 128, false, 1, 4000, kCopyBytes,
     Unit::kBytesPerCycle, "reduce_alone_bytes"},
};

constexpr Probe kTensorProbes[] = {
    {"probe_tensor_load", "tcgen05.ld of 32 columns by 4 warps, each waited for", 128, false, 1, 20000, 1,
     Unit::kCycles, "tensor_load_latency"},
    {"probe_tensor_loads", "the same, two at a time: bytes a sub-partition", 128, false, 1, 20000, 4 * 4096,
     Unit::kBytesPerCycle, "tensor_read_bytes"},
    {"probe_products_n64_tensor", "tcgen05.mma M128 N64 K16, A in tensor memory, in batches of 16", 32, false,
     2, 10000, 16, Unit::kCycles, "product_floor"},
    {"probe_products_n64_shared", "the same, A in shared memory", 32, false, 2, 10000, 16},
    {"probe_products_n128_shared", "M128 N128 K16, A in shared memory", 32, false, 2, 10000, 16},
    {"probe_products_n64_shared", "N64 while 7 warps load from shared memory", 256, false, 2, 10000, 16,
     Unit::kCycles, "shared_ports"},
    {"probe_products_n128_shared", "N128 while 7 warps load from shared memory", 256, false, 2, 10000, 16,
     Unit::kCycles, "shared_ports"},
};

class Bench {
 public:
  explicit Bench(Workbench& workbench) : workbench_(workbench) {}
  ~Bench() {
    for (Address address : {memory_, out_}) {
      if (address != 0) workbench_.release(address);
    }
  }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  Status prepare() {
    const std::size_t words = 256u * static_cast<std::size_t>(workbench_.multiprocessors());
    if (Status s = workbench_.allocate(kMemoryBytes, &memory_); !s.ok()) return s;
    if (Status s = workbench_.allocate(4 * words, &out_); !s.ok()) return s;
    if (Status s = workbench_.fill(memory_, 0, kMemoryBytes / 4, nullptr); !s.ok()) return s;
    return workbench_.fill(out_, 0, words, nullptr);
  }

  // Seconds of n repetitions, from the difference of twice as many and as many; the least of several runs.
  Status seconds(const Probe& probe, int n, double* seconds) {
    double once = 1e9, twice = 1e9;
    for (int run = 0; run < kRuns; ++run) {
      for (const int times : {1, 2}) {
        double taken;
        if (Status s = launch(probe, n * times, &taken); !s.ok()) return s;
        double& least = times == 1 ? once : twice;
        least = std::min(least, taken);
      }
    }
    *seconds = twice - once;
    return {};
  }

 private:
  Status launch(const Probe& probe, int n, double* seconds) {
    const Parameters parameters = {reinterpret_cast<float*>(memory_), reinterpret_cast<std::uint32_t*>(out_),
                                   n};
    Launch launch;
    launch.image = &image(workbench_.arch());
    launch.entry = probe.entry;
    launch.grid.x = probe.everywhere ? static_cast<std::uint32_t>(workbench_.multiprocessors()) : 1;
    launch.block.x = probe.threads;
    launch.shared_bytes = probe.buffers * kCopyBytes;
    launch.parameters = std::as_bytes(std::span(&parameters, 1));
    if (Status s = workbench_.mark(0, nullptr); !s.ok()) return s;
    if (Status s = workbench_.launch(launch, nullptr); !s.ok()) return s;
    if (Status s = workbench_.mark(1, nullptr); !s.ok()) return s;
    if (Status s = workbench_.wait(nullptr); !s.ok()) return s;
    double milliseconds = 0;
    if (Status s = workbench_.elapsed(&milliseconds); !s.ok()) return s;
    *seconds = milliseconds / 1000;
    // A probe that did nothing would be a fast one.
    std::uint32_t done = 0;
    if (Status s = workbench_.download(std::as_writable_bytes(std::span(&done, 1)), out_, nullptr); !s.ok())
      return s;
    if (done == 0) return internal_failure(fmt::format("{} reports nothing done", probe.entry));
    return workbench_.fill(out_, 0, 1, nullptr);
  }

  Workbench& workbench_;
  Address memory_ = 0, out_ = 0;
};

}  // namespace

Status measure(Workbench& workbench, double effort, const std::function<void(const std::string&)>& began,
               std::vector<Measured>* measured) {
  Bench bench(workbench);
  if (Status s = bench.prepare(); !s.ok()) return s;
  const auto repetitions = [&](int n) { return std::max(4, static_cast<int>(effort * n)); };

  const Probe chain = {"probe_chain", "", 32, false, 0, 20000, kChained};
  began(chain.entry);
  double seconds;
  if (Status s = bench.seconds(chain, repetitions(chain.n), &seconds); !s.ok()) return s;
  const double cycle = seconds / (repetitions(chain.n) * chain.operations * kChainLatency);
  measured->push_back({chain.entry, "a cycle, by a chain of additions of four", "ns", cycle * 1e9, ""});

  const auto one = [&](const Probe& probe) -> Status {
    began(probe.entry);
    const int n = repetitions(probe.n);
    if (Status s = bench.seconds(probe, n, &seconds); !s.ok()) return s;
    const double each = seconds / n;
    const double value = probe.unit == Unit::kCycles ? each / cycle / probe.operations
                         : probe.unit == Unit::kBytesPerCycle
                             ? probe.operations / (each / cycle)
                             : probe.operations * workbench.multiprocessors() / each / 1e12;
    const char* const unit = probe.unit == Unit::kCycles          ? "cycles"
                             : probe.unit == Unit::kBytesPerCycle ? "bytes a cycle"
                                                                  : "TB/s";
    measured->push_back({probe.entry, probe.what, unit, value, probe.constant});
    return {};
  };
  for (const Probe& probe : kProbes) {
    if (Status s = one(probe); !s.ok()) return s;
  }
  if (workbench.arch() != Arch::kSm100) return {};
  for (const Probe& probe : kTensorProbes) {
    if (Status s = one(probe); !s.ok()) return s;
  }
  return {};
}

}  // namespace flashback::micro
