#include "bench/pass_suite.h"

#include <fmt/format.h>

#include "program/failure.h"

namespace flashback::bench {
namespace {

using program::require;

class OpenStream {
 public:
  explicit OpenStream(Workbench& workbench) : workbench_(workbench) {
    require(workbench.open_stream(&stream_));
  }
  ~OpenStream() { workbench_.close_stream(stream_); }
  OpenStream(const OpenStream&) = delete;
  OpenStream& operator=(const OpenStream&) = delete;

  Stream get() const { return stream_; }

 private:
  Workbench& workbench_;
  Stream stream_ = nullptr;
};

// What is wrong in `check`, or nothing.
std::string sentence_of(const Check& check) {
  if (check.slice) {
    for (const auto& [name, verdict] : *check.slice) {
      if (!verdict.ok) return fmt::format("{} of the last group of heads: {}", name, verdict.sentence);
    }
  }
  for (const auto& [name, distance] : check.from_first) {
    if (distance.tensor <= kMostTensorDistance && distance.block <= kMostBlockDistance) continue;
    return fmt::format(
        "{} lies {:.2e} from the first contender's, and its worst block {:.2e} (nan: an element is none or "
        "was not "
        "written); accepted: at most {} and {}",
        name, distance.tensor, distance.block, kMostTensorDistance, kMostBlockDistance);
  }
  return {};
}

// One call with NaN in all that it should write.
Check check(Workbench& workbench, CellData& data, int set, Contender& contender, Slice* slice) {
  data.poison(set);
  contender.begin(data.pass(set));
  contender.enqueue();
  require(workbench.wait(data.pass(set).stream));
  Check check;
  check.from_first = data.distances(set);
  if (slice) check.slice = slice->judge(data.pass(set));
  check.wrong = sentence_of(check);
  return check;
}

}  // namespace

std::string CellResult::wrong() const {
  for (const ContenderResult& contender : contenders) {
    if (!contender.check.wrong.empty())
      return fmt::format("{}: {}: {}", name(cell), contender.name, contender.check.wrong);
  }
  return {};
}

std::vector<CellResult> measure_passes(Workbench& workbench, const PassSuite& suite,
                                       const std::vector<Contender*>& contenders, GpuSensors* sensors,
                                       const std::function<void(const Cell&)>& began) {
  const OpenStream stream(workbench);
  Timer timer(workbench, stream.get(), suite.flush_bytes);
  std::vector<CellResult> results;
  for (const Cell& cell : suite.cells) {
    began(cell);
    CellData data(workbench, stream.get(), cell);
    std::optional<Slice> slice;
    if (Slice::fits(cell.shape)) slice.emplace(workbench, data.pass(0), suite.threads);
    CellResult& result = results.emplace_back(CellResult{cell, {}});
    for (Contender* contender : contenders) {
      const int set = contender == contenders.front() ? 0 : 1;
      result.contenders.push_back(
          {contender->name(), check(workbench, data, set, *contender, slice ? &*slice : nullptr), {}});
    }
    if (!result.wrong().empty()) continue;
    for (const Protocol& protocol : suite.protocols) {
      std::vector<Timing> timings = take_times(timer, protocol, contenders, sensors);
      for (std::size_t i = 0; i < timings.size(); ++i)
        result.contenders[i].timings.push_back(std::move(timings[i]));
    }
  }
  return results;
}

}  // namespace flashback::bench
