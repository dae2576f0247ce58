// The kernel's own run, drawn: lanes, sections, and that what is drawn is what was replayed.
#include "emulator/trace/trace.h"

#include <gtest/gtest.h>

#include <algorithm>

#include <nlohmann/json.hpp>

#include "bench/recorded.h"

namespace flashback::emulator::trace {
namespace {

constexpr int kTiles = 12;

Run run_of(TensorMemory memory, Signal signal) {
  Problem problem;
  problem.tensor_memory = memory;
  problem.signal = signal;
  const int tiles = kTiles;
  const bench::Recordings recordings = bench::record(Arch::kSm100, problem, {&tiles, 1});
  Run run;
  run.title = recordings.at(tiles).kernel->name;
  run.outcome = timing::replay(recordings.at(tiles), timing::nominal(Arch::kSm100), &run.timeline);
  EXPECT_TRUE(run.outcome.ok()) << run.outcome.error;
  return run;
}

// The baseline and the result.
const std::vector<Run>& runs() {
  static const std::vector<Run> both = {run_of(TensorMemory::kAliased, Signal::kCta),
                                        run_of(TensorMemory::kSplit, Signal::kWarp)};
  return both;
}

const timing::Dependences& dependences() {
  static const timing::Dependences of_baseline = [] {
    Problem problem;
    problem.tensor_memory = TensorMemory::kAliased;
    problem.signal = Signal::kCta;
    const int tiles = kTiles;
    return timing::Dependences(bench::record(Arch::kSm100, problem, {&tiles, 1}).at(tiles));
  }();
  return of_baseline;
}

// Five barriers of all eight compute warps in a tile of the baseline, none in one of the result.
TEST(Traces, ComputeWideBarriersAreThoseOfTheVariant) {
  for (int r = 0; r < 2; ++r) {
    const trace::Run& run = runs()[r];
    const SteadyTile tile = steady_tile(run);
    ASSERT_GT(tile.cycles, 0);
    int meetings = 0;
    for (const timing::Meeting& meeting : run.timeline.meetings) {
      meetings += meeting.warps == 8 && meeting.time >= tile.begin && meeting.time < tile.begin + tile.cycles;
    }
    EXPECT_EQ(meetings, r == 0 ? 5 : 0) << run.title;
  }
}

// The order of products that the map prescribes, over a tile.
TEST(Traces, TheTensorCoreShowsTheOrderOfTheMap) {
  const char* const orders[] = {"S dK dQ dP dV ", "S dV dK dQ dP "};
  for (int r = 0; r < 2; ++r) {
    const trace::Run& run = runs()[r];
    const double begin = steady_tile(run).begin;
    std::string order;
    for (const timing::Span& span : run.timeline.spans) {
      if (span.actor.agent != timing::Agent::kTensorCore || span.begin < begin) continue;
      const std::string& name = run.timeline.kernel->sections[span.actor.section];
      if (order.empty() && name != "S") continue;
      order += name + " ";
    }
    EXPECT_EQ(order.substr(0, std::string(orders[r]).size() * 2), std::string(orders[r]) + orders[r])
        << run.title;
  }
}

TEST(Traces, ViewsHaveEveryLaneAndSection) {
  const std::string picture = svg(runs()), table = text(runs());
  for (const char* word : {"tensor core", "TMA", "reduction", "warp 4", "warp 11", "load S", "softmax",
                           "store P", "load dP", "dS", "store dS", "add dQ", "waits for"}) {
    EXPECT_NE(picture.find(word), std::string::npos) << word;
    EXPECT_NE(table.find(word), std::string::npos) << word;
  }
  EXPECT_NE(picture.find("stroke-dasharray=\"4 3\""), std::string::npos);
  const nlohmann::json events = nlohmann::json::parse(chrome_json(runs()))["traceEvents"];
  double last = 0;
  for (const nlohmann::json& event : events) {
    if (event["ph"] == "X") last = std::max(last, event["ts"].get<double>() + event["dur"].get<double>());
  }
  EXPECT_GT(last, 0.9 * runs()[0].outcome.cycles);
}

TEST(Traces, TheOrderOfARunIsItsOwnAndNotThatOfAnotherMap) {
  const Order own = compare_order(runs()[0], runs()[0], dependences());
  EXPECT_GT(own.dependent, 100);
  EXPECT_EQ(own.dependent_kept, own.dependent);
  EXPECT_GT(own.free, 10);
  EXPECT_EQ(own.free_kept, own.free);
  EXPECT_TRUE(own.differences.empty());
  EXPECT_FALSE(compare_order(runs()[1], runs()[0], dependences()).differences.empty());
}

TEST(Traces, APairInAnotherOrderIsToldWithTheTimeBetween) {
  // All of one section moved by so many tiles.
  const auto moved = [](const std::string& section, double tiles) {
    trace::Run run = runs()[0];
    for (timing::Outcome::Begin& begin : run.outcome.begins) {
      if (run.timeline.kernel->sections[begin.section] == section)
        begin.time += tiles * steady_tile(run).cycles;
    }
    return compare_order(run, runs()[0], dependences());
  };
  const Order of_softmax = moved("softmax", -1);
  EXPECT_LT(of_softmax.dependent_kept, of_softmax.dependent);
  const auto has = [](const Order& order, const std::string& what) {
    return std::any_of(order.differences.begin(), order.differences.end(),
                       [&](const std::string& sentence) { return sentence.find(what) != sentence.npos; });
  };
  EXPECT_TRUE(has(of_softmax, "before warp 4: softmax as predicted")) << of_softmax.differences.at(0);
  EXPECT_TRUE(has(of_softmax, "but it must come first"));
  const Order of_load = moved("delta", 3);
  EXPECT_LT(of_load.free_kept, of_load.free);
  EXPECT_TRUE(has(of_load, "neither waits for the other"));
}

TEST(Traces, ASectionThatOneRunLacksIsNamed) {
  trace::Run without = runs()[0];
  std::erase_if(without.outcome.begins, [&](const timing::Outcome::Begin& begin) {
    return without.timeline.kernel->sections[begin.section] == "store P";
  });
  std::vector<std::string> sentences = compare_order(without, runs()[0], dependences()).differences;
  std::sort(sentences.begin(), sentences.end());
  ASSERT_GE(sentences.size(), 2u);  // of each warpgroup's first warp
  EXPECT_EQ(sentences[0], "warp 4: store P is predicted and not predicted");
  EXPECT_EQ(sentences[1], "warp 8: store P is predicted and not predicted");
}

}  // namespace
}  // namespace flashback::emulator::trace
