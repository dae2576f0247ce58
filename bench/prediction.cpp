#include "bench/prediction.h"

#include <algorithm>
#include <atomic>
#include <queue>
#include <thread>

#include "emulator/timing/replay.h"
#include "kernels/shared/mask.h"
#include "program/failure.h"

namespace flashback::bench {
namespace {

using emulator::timing::Constant;
using emulator::timing::Costs;

constexpr int kTile = 128;

int tiles_of(std::int64_t rows) {
  return static_cast<int>((rows + kTile - 1) / kTile);
}

// Trips of the tile of keys k.
int trips_of(const Problem& problem, int k) {
  const shared::Lengths lengths = {static_cast<int>(problem.shape.seqlen_q),
                                   static_cast<int>(problem.shape.seqlen_k)};
  const shared::Mask mask = problem.mask == Mask::kCausal ? shared::Mask::kCausal : shared::Mask::kDense;
  const shared::TileRange range = shared::query_tiles(mask, k * kTile, lengths, kTile);
  return std::max(range.end - range.begin, 0);
}

// Each multiprocessor takes the next CTA when it is free.
double makespan(const std::vector<double>& ctas, int multiprocessors) {
  std::priority_queue<double, std::vector<double>, std::greater<>> free;
  for (int sm = 0; sm < multiprocessors; ++sm) free.push(0);
  double end = 0;
  for (double cycles : ctas) {
    const double done = free.top() + cycles;
    free.pop();
    free.push(done);
    end = std::max(end, done);
  }
  return end;
}

// Bytes of the kernels before and after: out, dout and the accumulator's zeros; the accumulator and dq.
double small_kernel_bytes(const Shape& shape) {
  const double elements =
      double(shape.batch) * double(shape.heads) * double(shape.seqlen_q) * double(shape.head_dim);
  return elements * (2 + 2 + 4) + elements * (4 + 2);
}

}  // namespace

CtaTimes::CtaTimes(const Recordings& recordings, const Costs& costs) {
  for (const auto& [trips, recording] : recordings) {
    const emulator::timing::Outcome outcome = emulator::timing::replay(recording, costs, nullptr);
    if (!outcome.ok()) throw program::Failure(program::kInternal, "the replay stops: " + outcome.error);
    replayed_.emplace_back(trips, outcome.cycles);
  }
  const auto& [fewer, before] = replayed_[replayed_.size() - 2];
  const auto& [most, after] = replayed_.back();
  tile_ = (after - before) / (most - fewer);
}

double CtaTimes::cycles(int trips) const {
  if (trips >= replayed_.back().first) {
    return replayed_.back().second + (trips - replayed_.back().first) * tile_;
  }
  if (trips < replayed_.front().first) return replayed_.front().second;
  const auto above =
      std::find_if(replayed_.begin(), replayed_.end(), [&](const auto& r) { return r.first > trips; });
  const auto below = std::prev(above);
  const double share = double(trips - below->first) / (above->first - below->first);
  return below->second + share * (above->second - below->second);
}

double flops(const Problem& problem) {
  const Shape& s = problem.shape;
  const double dense =
      10.0 * double(s.batch) * double(s.heads) * double(s.seqlen_q) * double(s.seqlen_k) * double(s.head_dim);
  return problem.mask == Mask::kCausal ? dense / 2 : dense;
}

Pass predict(Arch arch, const Problem& problem, const CtaTimes& times, const Costs& costs) {
  const Shape& s = problem.shape;
  const bool persistent = arch == Arch::kSm90;
  // A persistent CTA begins once; then each item costs its tiles, of every query head of the group.
  const double begin = persistent ? times.cycles(1) - times.tile() : 0;
  const auto heads = static_cast<int>(persistent ? s.kv_heads : s.heads);
  const double group = persistent ? double(s.heads) / double(s.kv_heads) : 1;
  std::vector<double> ctas;
  const auto add_tile = [&](int k) {
    const int trips = trips_of(problem, k);
    ctas.push_back(persistent ? group * trips * times.tile() : times.cycles(trips));
  };
  if (persistent) {
    for (int k = 0; k < tiles_of(s.seqlen_k); ++k) {
      for (std::int64_t h = 0; h < s.batch * heads; ++h) add_tile(k);
    }
  } else {
    for (std::int64_t h = 0; h < s.batch * heads; ++h) {
      for (int k = 0; k < tiles_of(s.seqlen_k); ++k) add_tile(k);
    }
  }
  const double main = makespan(ctas, static_cast<int>(costs.multiprocessors)) + begin;
  Pass pass;
  pass.tile_cycles = times.tile();
  pass.seconds = (main + 3 * costs.launch) / (costs.gigahertz * 1e9) +
                 small_kernel_bytes(s) / (costs.memory_terabytes * 1e12);
  pass.tflops = flops(problem) / pass.seconds / 1e12;
  return pass;
}

Interval interval_of(double nominal, std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto at = [&](double share) {
    return values[static_cast<std::size_t>(share * double(values.size() - 1) + 0.5)];
  };
  return {nominal, at(0.1), at(0.9), values.front(), values.back()};
}

std::vector<Costs> settings(Arch arch) {
  std::vector<Costs> all = {emulator::timing::nominal(arch)};
  for (const Constant& constant : emulator::timing::constants(arch)) {
    if (!constant.open) continue;
    const std::size_t known = all.size();
    for (double value : {constant.low, constant.high}) {
      if (value == constant.nominal) continue;
      for (std::size_t i = 0; i < known; ++i) {
        all.push_back(all[i]);
        all.back().*constant.value = value;
      }
    }
  }
  return all;
}

void in_parallel(std::size_t n, const std::function<void(std::size_t)>& f) {
  std::atomic<std::size_t> next{0};
  std::exception_ptr failure;
  std::atomic<bool> failed{false};
  const auto work = [&] {
    for (std::size_t i; (i = next++) < n;) {
      try {
        f(i);
      } catch (...) {
        if (!failed.exchange(true)) failure = std::current_exception();
        return;
      }
    }
  };
  std::vector<std::thread> others;
  for (unsigned t = 1; t < std::thread::hardware_concurrency(); ++t) others.emplace_back(work);
  work();
  for (std::thread& thread : others) thread.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace flashback::bench
