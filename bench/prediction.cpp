#include "bench/prediction.h"

#include <algorithm>
#include <atomic>
#include <queue>
#include <thread>

#include "attention/launch.h"
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

// A sequence under the problem's mask.
struct Sight {
  shared::Mask mask;
  shared::Lengths lengths;

  Sight(const Problem& problem, std::int64_t q_rows, std::int64_t k_rows) {
    const auto bound = [](std::int64_t side) {
      return side == kUnlimited ? shared::kUnbounded : static_cast<int>(side);
    };
    mask = problem.mask == Mask::kDense    ? shared::Mask::kDense
           : problem.mask == Mask::kCausal ? shared::Mask::kCausal
                                           : shared::Mask::kWindow;
    lengths = {static_cast<int>(q_rows), static_cast<int>(k_rows), bound(problem.mask.left),
               bound(problem.mask.right)};
  }
  // Query tiles that see the tile of keys k.
  int trips(int k) const {
    const shared::TileRange range = shared::query_tiles(mask, k * kTile, lengths, kTile, kTile);
    return std::max(range.end - range.begin, 0);
  }
  // Scores that count; under a causal mask half of all, as is usual.
  double scores() const {
    const double all = double(lengths.q_rows) * lengths.k_rows;
    if (mask != shared::Mask::kWindow) return mask == shared::Mask::kCausal ? all / 2 : all;
    double seen = 0;
    for (int row = 0; row < lengths.q_rows; ++row) {
      const shared::KeyRange keys = shared::keys_seen(shared::band_of(mask, lengths), row, lengths.k_rows);
      seen += std::max(keys.end - keys.begin, 0);
    }
    return seen;
  }
};

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

// Bytes of the kernels before and after: out, dout and the accumulator's zeros; the accumulator and dq. Of
// grouped queries dK and dV are summed in accumulators too.
double small_kernel_bytes(const Problem& problem, double rows) {
  const double channels = double(problem.shape.head_dim),
               of_q = rows * double(problem.shape.heads) * channels,
               of_k = rows * double(problem.shape.kv_heads) * channels;
  const bool summed = problem.shape.heads != problem.shape.kv_heads;
  return of_q * (2 + 2 + 4) + of_q * (4 + 2) + (summed ? 2 * of_k * (4 + 4 + 2) : 0);
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

Predicted predict(Arch arch, const Problem& problem, const CtaTimes& times, const Costs& costs,
                  std::vector<std::int64_t> sequences) {
  const Shape& s = problem.shape;
  std::vector<Sight> sights;
  double rows = 0, scores = 0;
  if (sequences.empty()) {
    sights.assign(static_cast<std::size_t>(s.batch), Sight(problem, s.seqlen_q, s.seqlen_k));
    rows = double(s.batch * s.seqlen_q);
    scores = double(s.batch) * sights.front().scores();
  } else {
    for (std::int64_t length : sequences) {
      sights.emplace_back(problem, length, length);
      rows += double(length);
      scores += sights.back().scores();
    }
  }
  Plan plan;
  program::require(make_plan(arch, problem, &plan));
  const bool persistent = arch == Arch::kSm90;
  // A persistent CTA begins once; then each item costs its tiles, of every query head of the group.
  const double begin = persistent ? times.cycles(1) - times.tile() : 0;
  const auto heads = static_cast<int>(persistent ? s.kv_heads : s.heads);
  const double group = persistent ? double(s.heads) / double(s.kv_heads) : 1;
  std::vector<double> ctas;
  const auto add_tile = [&](const Sight& sight, int k) {
    const int trips = sight.trips(k);
    ctas.push_back(persistent ? group * trips * times.tile() : times.cycles(trips));
  };
  int most_tiles = 0;
  for (const Sight& sight : sights) most_tiles = std::max(most_tiles, tiles_of(sight.lengths.k_rows));
  if (persistent) {
    for (int k = 0; k < most_tiles; ++k) {
      for (int h = 0; h < heads; ++h) {
        for (const Sight& sight : sights) {
          if (k < tiles_of(sight.lengths.k_rows)) add_tile(sight, k);
        }
      }
    }
  } else {
    const bool backwards = problem.deterministic && problem.mask != Mask::kDense;
    for (int h = 0; h < heads; ++h) {
      for (const Sight& sight : sights) {
        const int tiles = tiles_of(sight.lengths.k_rows);
        for (int k = 0; k < tiles; ++k) add_tile(sight, backwards ? tiles - 1 - k : k);
      }
    }
  }
  const double main = makespan(ctas, static_cast<int>(costs.multiprocessors)) + begin;
  Predicted pass;
  pass.tile_cycles = times.tile();
  pass.seconds = (main + double(plan.launches.size()) * costs.launch) / (costs.gigahertz * 1e9) +
                 small_kernel_bytes(problem, rows) / (costs.memory_terabytes * 1e12);
  pass.tflops = 10 * double(s.heads) * scores * double(s.head_dim) / pass.seconds / 1e12;
  return pass;
}

Interval interval_of(std::vector<double> values) {
  const double nominal = values.front();
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
