// Kernels with clocks: what is added to the text, and that such a kernel does what the one without does. Time
// itself needs a GPU: here the notes hold another register than the clock.
#include "bench/clocks/clocks.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "bench/clocks/timeline.h"
#include "bench/recorded.h"
#include "emulator/workbench.h"
#include "tests/device/image_text.h"

namespace flashback::clocks {
namespace {

std::size_t count(std::string_view in, std::string_view what) {
  std::size_t n = 0;
  for (std::size_t at = 0; (at = in.find(what, at)) != std::string_view::npos; ++at) ++n;
  return n;
}

std::string_view entry_of(std::string_view text, const std::string& name) {
  const std::size_t begin = text.find(".entry " + name + "(");
  return text.substr(begin, text.find(".entry ", begin + 1) - begin);
}

TEST(Clocks, AreReadAtTheBeginAndBeforeEachReturnOfTheEntryAlone) {
  const std::string ptx = testing::text_of(*testing::find_image("sm90_backward"));
  const std::string name = "backward_sm90_d64_bf16_dense";
  const ClockedKernel clocked = with_clocks(ptx, name, 16, Where::kEnds);
  const std::string_view entry = entry_of(clocked.ptx, name), original = entry_of(ptx, name);
  EXPECT_EQ(count(clocked.ptx, ".entry "), 1u);
  EXPECT_GE(count(original, "ret;"), 1u);
  EXPECT_EQ(count(entry, "%clock;"), 1 + count(original, "\tret;"));
  EXPECT_EQ(clocked.places.size(), 2u);
  EXPECT_LT(entry.find("%clock;"), entry.find("bar.sync"));
  EXPECT_EQ(with_clocks(ptx, "no_such_entry", 16, Where::kEnds).ptx, "");
}

TEST(Clocks, WaitsAreNotedWithTheirLineAndEverySectionWithItsName) {
  for (const auto& [image, name] :
       {std::pair{"sm90_backward", "backward_sm90_d64_bf16_causal"},
        std::pair{"sm100_backward", "backward_sm100_d64_bf16_dense_split_warp"}}) {
    const std::string ptx = testing::text_of(*testing::find_image(image));
    const std::string_view all = ptx, original = entry_of(ptx, name);
    const ClockedKernel clocked = with_clocks(ptx, name, 16, Where::kSections);
    std::size_t waits = 0, ends = 0, sections = 0;
    std::vector<std::string_view> lines;
    for (std::size_t at = 0; at < all.size(); at = all.find('\n', at) + 1)
      lines.push_back(all.substr(at, all.find('\n', at) - at));
    for (const Place& place : clocked.places) {
      ends += place.ends_wait;
      sections += !place.section.empty();
      if (place.waiting_line == 0) continue;
      ++waits;
      const std::string_view line = lines.at(place.waiting_line - 1);
      EXPECT_TRUE(line.find("wait") != line.npos || line.find("bar.sync") != line.npos) << line;
    }
    EXPECT_EQ(sections, count(original, "//@ ")) << name;
    EXPECT_EQ(waits, ends) << name;
    // But on Hopper for those under which the assembler lets exponentials run on.
    const std::size_t all_waits = count(original, "mbarrier.try_wait") + count(original, "bar.sync") +
                                  count(original, "wgmma.wait_group") +
                                  count(original, "cp.async.bulk.wait_group") +
                                  count(original, "tcgen05.wait::");
    const bool hopper = std::string_view(image) == "sm90_backward";
    EXPECT_EQ(waits, all_waits - (hopper ? 4 : 0)) << name;
  }
}

// What a warp passes, by the notes of the kernel with clocks and by the recording of the one without.
class OnTheEmulator : public ::testing::TestWithParam<Arch> {};

TEST_P(OnTheEmulator, NotesTellTheSectionsThatTheWarpsRun) {
  Problem problem;
  const int tiles = 4;
  problem.shape = {.heads = 1, .kv_heads = 1, .seqlen_q = 128 * tiles, .seqlen_k = 128};
  emulator::MachineOptions options;
  options.arch = GetParam();
  options.threads = 1;
  ClockedPass pass(emulator::make_workbench(options));
  ASSERT_TRUE(pass.prepare(problem, Where::kSections, "%ctaid.x").ok());
  std::vector<std::vector<Stamp>> stamps;
  const Status ran = pass.run(&stamps);
  ASSERT_TRUE(ran.ok()) << ran.sentence();

  const bench::Recordings recordings = bench::record(GetParam(), problem, {&tiles, 1});
  const emulator::timing::Recording& recorded = recordings.at(tiles);
  ASSERT_EQ(stamps.size(), recorded.warps.size());
  emulator::trace::Run predicted;
  predicted.outcome =
      emulator::timing::replay(recorded, emulator::timing::nominal(GetParam()), &predicted.timeline);
  std::size_t noted_sections = 0;
  for (std::size_t w = 0; w < stamps.size(); ++w) {
    std::vector<std::string> noted, replayed;
    for (const Stamp& stamp : stamps[w]) {
      const std::string& section = pass.places()[stamp.place].section;
      if (!section.empty()) noted.push_back(section);
    }
    for (const auto& begin : predicted.outcome.begins) {
      if (begin.warp == w) replayed.push_back(recorded.kernel->sections[begin.section]);
    }
    noted_sections += noted.size();
    EXPECT_EQ(noted, replayed) << "warp " << w;
  }
  EXPECT_GT(noted_sections, 100u);
  EXPECT_TRUE(stamps[5].back().place == pass.places().size() - 1 || stamps[5].size() > 20);

  const emulator::trace::Run measured = timeline_of(pass.places(), stamps, predicted);
  EXPECT_EQ(measured.outcome.begins.size(), noted_sections);
}
INSTANTIATE_TEST_SUITE_P(, OnTheEmulator, ::testing::Values(Arch::kSm90, Arch::kSm100),
                         [](const auto& info) { return std::string(name(info.param)); });

}  // namespace
}  // namespace flashback::clocks
