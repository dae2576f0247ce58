// The kernel's own run, drawn: lanes, sections, and that what is drawn is what was replayed.
#include "emulator/trace/trace.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include <nlohmann/json.hpp>

#include "bench/recorded.h"
#include "emulator/trace/lanes.h"

namespace flashback::emulator::trace {
namespace {

constexpr int kTiles = 12;

Run run_of(TensorMemory memory, Signal signal) {
  Problem problem;
  problem.tensor_memory = memory;
  problem.signal = signal;
  const int tiles = kTiles;
  const bench::Recordings recordings = bench::record(Arch::kSm100, problem, {&tiles, 1});
  trace::Run run;
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

constexpr Colour kColours[] = {{"dQ", "#00aa00"}, {"softmax", "#aa0000"}};

TEST(Traces, ViewsHaveEveryLaneAndSection) {
  const std::string picture = svg(runs(), kColours), table = text(runs());
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

// Every warp with a section has a lane, also one that does nothing but ask units for work.
TEST(Traces, WarpsOfEveryRoleHaveALane) {
  std::string lanes;
  for (const Lane& lane : lanes_of(runs()[0])) lanes += lane.name + ", ";
  EXPECT_EQ(lanes,
            "tensor core, TMA, reduction, warp 0, warp 1, warp 2, warp 3, warp 4, warp 5, warp 6, warp 7, "
            "warp 8, warp 9, warp 10, warp 11, warp 12, warp 13, ");
}

// A section has the colour of the table in every picture, whatever is drawn before it.
TEST(Traces, AColourIsTheSections) {
  for (const std::vector<trace::Run>& some :
       {runs(), std::vector{runs()[1]}, std::vector{runs()[1], runs()[0]}}) {
    const std::string picture = svg(some, kColours);
    std::size_t bars = 0;
    for (std::size_t at = 0; (at = picture.find("<title>softmax: ", at)) != std::string::npos; ++at) {
      const std::size_t fill = picture.rfind("fill=\"", at);
      EXPECT_EQ(picture.substr(fill + 6, 7), "#aa0000");
      ++bars;
    }
    EXPECT_GE(bars, 8 * some.size());
    // The legend goes by the table; a section that is not in it is black and comes last.
    EXPECT_LT(picture.find("<title>dQ<"), picture.find("<title>softmax<"));
    EXPECT_LT(picture.find("<title>softmax<"), picture.find("<title>S<"));
    EXPECT_EQ(picture.substr(picture.rfind("fill=\"", picture.find("<title>S<")) + 6, 7), "#000000");
  }
}

// The path is without gaps: its steps together are the mean tile, and in the baseline more of it is on warps
// than in the result.
TEST(Traces, TheStepsOfTheCriticalPathAreTheTile) {
  double softmax[2] = {};
  for (int r = 0; r < 2; ++r) {
    const TileBegins begins = tile_begins(runs()[r]);
    const double tile =
        (begins.times[begins.to] - begins.times[begins.from]) / double(begins.to - begins.from);
    double sum = 0;
    for (const PathStep& step : critical_path(runs()[r])) {
      EXPECT_GE(step.cycles, 0) << step.what;
      EXPECT_EQ(step.what.find("not "), std::string::npos) << step.cycles;
      if (step.what == "warps: softmax") softmax[r] = step.cycles;
      sum += step.cycles;
    }
    EXPECT_NEAR(sum, tile, 1e-6 * tile);
  }
  EXPECT_GT(softmax[0], softmax[1]);
}

// A chain of which each link is known: warp 4 works 100 cycles, its product takes 200, warp 5 waits for that,
// works 50 and lets warp 4 go on; each signal takes 10. Another warp beside it is on no path.
TEST(Traces, TheCriticalPathOfAChainIsTheChain) {
  trace::Run run;
  const auto kernel = std::make_shared<timing::Kernel>();
  kernel->sections = {"", "ask", "follow", "idle"};
  run.timeline.kernel = kernel;
  using timing::Agent;
  std::vector<timing::Span>& spans = run.timeline.spans;
  const auto work = [&](std::uint16_t warp, std::uint16_t section, double begin, double end) {
    spans.push_back({{Agent::kWarp, warp, section}, begin, end, false, {}});
  };
  constexpr double kTile = 100 + 200 + 10 + 50 + 10;
  for (int tile = 0; tile < 8; ++tile) {
    const double begin = kTile * tile;
    run.outcome.begins.push_back({begin, 4, 1});
    spans.push_back({{Agent::kTensorCore, 4, 1}, begin + 100, begin + 300, false, {}, begin + 100});
    spans.push_back(
        {{Agent::kWarp, 5, 2}, begin, begin + 310, true, {Agent::kTensorCore, 4, 1}, begin + 300});
    work(5, 2, begin, begin + kTile);
    spans.push_back(
        {{Agent::kWarp, 4, 1}, begin + 100, begin + kTile, true, {Agent::kWarp, 5, 2}, begin + 360});
    work(4, 1, begin, begin + kTile);
    work(6, 3, begin, begin + kTile);
  }
  std::string path;
  for (const PathStep& step : critical_path(run)) path += fmt::format("{} {:.0f}, ", step.what, step.cycles);
  EXPECT_EQ(path, "tensor core: ask 200, warps: ask 100, warps: follow 50, signals 20, ");
  // A run with clocks says nothing of what ended a wait: it has no path.
  for (timing::Span& span : spans) span.caused = 0;
  EXPECT_TRUE(critical_path(run).empty());
}

// What is drawn is a tile that takes as long as it says.
TEST(Traces, TheSteadyTileBeginsWhereATileOfItsLengthDoes) {
  trace::Run run;
  const auto kernel = std::make_shared<timing::Kernel>();
  kernel->sections = {"", "first"};
  run.timeline.kernel = kernel;
  double time = 0;
  for (const double cycles : {50., 50., 100., 300., 200., 100., 200., 200., 50.}) {
    run.outcome.begins.push_back({time, 4, 1});
    time += cycles;
  }
  const SteadyTile tile = steady_tile(run);
  EXPECT_EQ(tile.cycles, 200);
  EXPECT_EQ(tile.begin, 500);
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
