// What a plan says for given shapes, against numbers worked out by hand.
#include "attention/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "attention/launch.h"
#include "kernels/images.h"
#include "kernels/sm90/backward_wide/config.h"
#include "tests/device/image_text.h"

namespace flashback {
namespace {

Problem problem(const Shape& shape) {
  Problem p;
  p.shape = shape;
  p.tensors = packed_tensors(shape);
  return p;
}

Plan planned(const Problem& p, const Target& target = Arch::kSm100) {
  Plan plan;
  const Status s = make_plan(target, p, &plan);
  EXPECT_EQ(s.sentence(), "");
  return plan;
}

void expect_grid(const PlannedLaunch& launch, std::uint32_t x, std::uint32_t y, std::uint32_t z) {
  EXPECT_EQ(launch.grid.x, x) << launch.step;
  EXPECT_EQ(launch.grid.y, y) << launch.step;
  EXPECT_EQ(launch.grid.z, z) << launch.step;
}

TEST(Plan, OneCtaForEachTileAndHead) {
  const Plan plan = planned(problem({2, 3, 3, 129, 400, 64}));
  ASSERT_EQ(plan.launches.size(), 3u);
  ASSERT_EQ(plan.launches[0].step, "preprocess");
  expect_grid(plan.launches[0], 2 * 2, 3, 1);
  ASSERT_EQ(plan.launches[1].step, "main");
  expect_grid(plan.launches[1], 2 * 4, 3, 1);
  ASSERT_EQ(plan.launches[2].step, "postprocess");
  expect_grid(plan.launches[2], 2 * 2, 3, 1);
  EXPECT_EQ(plan.launches[0].block.x, 256u);
  EXPECT_EQ(plan.launches[1].block.x, 512u);
  EXPECT_GE(plan.launches[1].shared_bytes, 9 * 16384u) << "Q twice, K, V, dO, dS and dQ in two halves";
  EXPECT_LE(plan.launches[1].shared_bytes, 232448u) << "what a CTA of sm_100 may have";
}

TEST(Plan, WorkspacePartsFollowEachOther) {
  const Plan plan = planned(problem({1, 1, 1, 1, 1, 64}));
  EXPECT_EQ(plan.workspace.part("lse_log2").offset, 0u);
  EXPECT_EQ(plan.workspace.part("lse_log2").bytes, 512u);
  EXPECT_EQ(plan.workspace.part("delta").offset, 512u);
  EXPECT_EQ(plan.workspace.part("dq_accum").offset, 1024u);
  EXPECT_EQ(plan.workspace.part("dq_accum").bytes, 32768u);
  EXPECT_EQ(plan.workspace.bytes, 33792u);
  EXPECT_TRUE(plan.cleared.empty());
}

std::vector<std::string> steps(const Plan& plan) {
  std::vector<std::string> names;
  for (const PlannedLaunch& launch : plan.launches) names.emplace_back(launch.step);
  return names;
}
using Words = std::vector<std::string>;

TEST(Plan, LaunchesWhatTheProblemAsksFor) {
  Problem p = problem({2, 6, 2, 129, 400, 64});
  EXPECT_EQ(steps(planned(p)), (Words{"preprocess", "main", "postprocess", "dk", "dv"})) << "groups";
  p.shape.kv_heads = 6;
  p.tensors.sink = p.tensors.dsink = 16;
  EXPECT_EQ(steps(planned(p)), (Words{"preprocess", "sink", "main", "postprocess"}));
  p.tensors.sink = p.tensors.dsink = 0;
  p.mask = Mask::kCausal;
  EXPECT_EQ(steps(planned(p)), (Words{"preprocess", "main", "postprocess"}));
  p.mask = {10, 0};
  EXPECT_EQ(steps(planned(p)), (Words{"preprocess", "main", "postprocess", "dk", "dv"}))
      << "keys out of sight";
  p.k_sequences.seqused = 16;
  EXPECT_EQ(steps(planned(p)), (Words{"schedule", "preprocess", "main", "postprocess", "dk", "dv"}));
  p = problem({2, 6, 6, 0, 400, 64});
  EXPECT_EQ(steps(planned(p)), (Words{"dk", "dv"})) << "nothing but zeros";
  p = problem({2, 6, 6, 400, 0, 64});
  EXPECT_EQ(steps(planned(p)), (Words{"postprocess"})) << "nothing but zeros";
  p = problem({0, 6, 6, 400, 400, 64});
  EXPECT_EQ(steps(planned(p)), Words{});
  EXPECT_EQ(planned(p).workspace.bytes, 0u);
}

// A causal problem with more queries than keys: the rows that see nothing have no tiles. A window: neither
// have the keys that none sees.
TEST(Plan, TilesAreOfWhatIsInSight) {
  Problem p = problem({2, 1, 1, 1000, 300, 64});
  p.mask = Mask::kCausal;
  Plan plan = planned(p);
  expect_grid(plan.launches[0], 2 * 3, 1, 1);
  expect_grid(plan.launches[2], 2 * 8, 1, 1);  // zeros for the others
  p = problem({2, 1, 1, 300, 1000, 64});
  p.mask = {100, 0};
  plan = planned(p);
  expect_grid(plan.launches[0], 2 * 3, 1, 1);
  expect_grid(plan.launches[1], 2 * 4, 1, 1);  // 400 keys
}

// Of packed sequences only a bound is known: a tile begun for each that has rows.
TEST(Plan, PackedSequencesAreBoundedByTheirRows) {
  Problem p = problem({70'000, 2, 2, 1000, 100'000, 64});
  p.q_sequences.cu_seqlens = p.k_sequences.cu_seqlens = 16;
  const Plan plan = planned(p);
  ASSERT_EQ(plan.launches[0].step, "schedule");
  expect_grid(plan.launches[0], 1, 1, 1);
  expect_grid(plan.launches[1], (1000 + 1000 * 127) / 128, 2, 1);
  expect_grid(plan.launches[2], (100'000 + 70'000 * 127) / 128, 2, 1);
  expect_grid(plan.launches[3], 8, 2, 1);
  EXPECT_EQ(plan.workspace.part("q_first_tile").bytes, 4u * 70'001);
}

// The rows of a ragged map end where a sequence ends, and begin so much before the tensor.
TEST(Plan, MapsOfRaggedTensorsEndWithTheSequence) {
  Problem p = problem({3, 2, 2, 129, 400, 64});
  p.tensors.q.data = p.tensors.k.data = 0x10000000;
  p.q_sequences.cu_seqlens = 16;
  const Plan plan = planned(p);
  const TensorMapRequest& q = plan.maps[0].request;
  EXPECT_EQ(q.rank, 5);
  EXPECT_EQ(q.base, 0x10000000u - 129 * 256);
  EXPECT_EQ(std::vector<std::uint64_t>(q.dims, q.dims + 5), (std::vector<std::uint64_t>{64, 129, 2, 1, 130}));
  EXPECT_EQ(q.strides[0], 256u);
  EXPECT_EQ(q.strides[3], 256u);
  const TensorMapRequest& k = plan.maps[1].request;
  EXPECT_EQ(k.base, 0x10000000u);
  EXPECT_EQ(std::vector<std::uint64_t>(k.dims, k.dims + 5), (std::vector<std::uint64_t>{64, 400, 2, 3, 1}));
}

TEST(Plan, DeterministicModeCountsTurns) {
  Problem p = problem({2, 6, 2, 129, 400, 64});
  p.deterministic = true;
  p.workspace = 0x100000;
  const Plan plan = planned(p);
  Words cleared;
  for (const WorkspacePart& part : plan.cleared) cleared.emplace_back(part.name);
  EXPECT_EQ(cleared, (Words{"dk_accum", "dv_accum", "dq_turns", "dk_turns", "next_work"}));
  EXPECT_EQ(plan.workspace.part("dq_turns").bytes, 4u * 6 * 4);
  EXPECT_EQ(plan.workspace.part("dk_turns").bytes, 4u * 4 * 2 * 8);
  const auto& main = std::get<sm100::backward::Parameters>(plan.launches[1].parameters);
  EXPECT_NE(main.dq_turns, nullptr);
  EXPECT_NE(main.dk_turns, nullptr);
  EXPECT_NE(main.next_work, nullptr);
  p.deterministic = false;
  const Plan other = planned(p);
  EXPECT_EQ(std::get<sm100::backward::Parameters>(other.launches[1].parameters).next_work, nullptr);
}

TEST(Plan, SizesOfLargeProblemsDoNotWrap) {
  const Plan plan = planned(problem({4, 64, 64, 1 << 20, 1 << 20, 64}));
  EXPECT_EQ(plan.workspace.part("dq_accum").bytes, 4ull * 4 * 64 * (1 << 20) * 64);
  const TensorMapRequest& q = plan.maps[0].request;
  EXPECT_EQ(q.strides[2], 2ull * 64 * 64 * (1 << 20));
}

TEST(Plan, ParametersCarryTheProblem) {
  Problem p = problem({2, 3, 3, 129, 400, 64});
  p.workspace = 0x100000;
  p.tensors.lse.data = 0x200000;
  p.mask = {77, kUnlimited};
  const Plan plan = planned(p);
  const auto& pre = std::get<common::PreprocessParameters>(plan.launches[0].parameters);
  const auto& main = std::get<sm100::backward::Parameters>(plan.launches[1].parameters);
  const auto& post = std::get<common::PostprocessParameters>(plan.launches[2].parameters);
  EXPECT_EQ(main.sequences.batch, 2);
  EXPECT_EQ(main.sequences.q.rows, 129);
  EXPECT_EQ(main.sequences.k.rows, 400);
  EXPECT_EQ(main.sequences.left, 77);
  EXPECT_EQ(main.sequences.right, shared::kUnbounded);
  EXPECT_EQ(main.group, 1);
  EXPECT_EQ(main.scale, 0.125f);
  EXPECT_FLOAT_EQ(main.scale_log2, 0.18033688f);
  EXPECT_EQ(post.scale, 0.125f);
  EXPECT_EQ(pre.lse.data, reinterpret_cast<const float*>(0x200000));
  EXPECT_EQ(pre.lse.batch_stride, 3 * 129);
  EXPECT_EQ(pre.lse.head_stride, 129);
  EXPECT_EQ(main.lse_log2, reinterpret_cast<const float*>(0x100000));
  EXPECT_EQ(pre.lse_log2, main.lse_log2);
  EXPECT_EQ(pre.delta, main.delta);
  EXPECT_EQ(pre.dq_accum, main.dq_accum);
  EXPECT_EQ(post.accum, main.dq_accum);
  EXPECT_EQ(main.delta - main.lse_log2, 2 * 3 * 256);
  EXPECT_EQ(main.dk_accum, nullptr);
}

TEST(Plan, AnUnboundPlanHasNoPointers) {
  const Plan plan = planned(problem({1, 1, 1, 8, 8, 64}));
  EXPECT_EQ(std::get<sm100::backward::Parameters>(plan.launches[1].parameters).dq_accum, nullptr);
  EXPECT_EQ(plan.maps[0].request.base, 0u);
}

TEST(Plan, MapsTakeTheTensorsStrides) {
  Problem p = problem({2, 3, 3, 129, 400, 64});
  p.tensors.dout = {.data = 0x10000, .batch_stride = 88888, .row_stride = 72, .head_stride = 9288};
  const Plan plan = planned(p);
  const PlannedMap& dout = plan.maps[3];
  ASSERT_EQ(dout.tensor, "dout");
  const TensorMapRequest& r = dout.request;
  EXPECT_EQ(r.base, 0x10000u);
  EXPECT_EQ(r.rank, 5);
  EXPECT_EQ(std::vector<std::uint64_t>(r.dims, r.dims + 5), (std::vector<std::uint64_t>{64, 129, 3, 2, 1}));
  EXPECT_EQ(std::vector<std::uint64_t>(r.strides, r.strides + 3),
            (std::vector<std::uint64_t>{144, 18576, 177776}));
  EXPECT_EQ(std::vector<std::uint32_t>(r.box, r.box + 4), (std::vector<std::uint32_t>{64, 128, 1, 1}));
  EXPECT_EQ(r.swizzle, Swizzle::k128);

  const TensorMapRequest& dk = plan.maps[4].request;
  EXPECT_EQ(std::vector<std::uint64_t>(dk.dims, dk.dims + 4), (std::vector<std::uint64_t>{64, 400, 3, 2}));
  EXPECT_EQ(std::vector<std::uint32_t>(dk.box, dk.box + 4), (std::vector<std::uint32_t>{32, 128, 1, 1}));
  EXPECT_EQ(dk.swizzle, Swizzle::k64);
}

TEST(Plan, AnAxisOfSizeOneGetsALegalStride) {
  Problem p = problem({1, 1, 1, 129, 1, 64});
  p.tensors.q.batch_stride = 0;
  p.tensors.q.head_stride = -5;
  p.tensors.k.row_stride = 1;
  const Plan plan = planned(p);
  EXPECT_EQ(plan.maps[0].request.strides[1], 128u);
  EXPECT_EQ(plan.maps[0].request.strides[2], 128u);
  EXPECT_EQ(plan.maps[1].request.strides[0], 128u);
}

TEST(Plan, MapsFillTheWholeOfTheParametersForThem) {
  const Plan plan = planned(problem({1, 1, 1, 8, 8, 64}));
  std::set<std::size_t> offsets;
  for (const PlannedMap& map : plan.maps) offsets.insert(map.offset);
  EXPECT_EQ(offsets, (std::set<std::size_t>{0, 128, 256, 384, 512, 640}));
}

TEST(Plan, TextNamesWhatRunsAndWhatItNeeds) {
  const std::string text = to_text(planned(problem({2, 3, 3, 129, 400, 64})));
  for (const char* part :
       {"preprocess_sm100_d64_bf16", "backward_sm100_d64_bf16_dense_split_warp", "postprocess_sm100_d64_bf16",
        "grid 8 x 3 x 1", "block 512 x 1 x 1", "dims 64 x 129 x 3 x 2 x 1", "box 32 x 128 x 1 x 1 x 1",
        "workspace: 405504 bytes"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " is missing in\n" << text;
  }
}

TEST(PlanSm90, CtasArePersistent) {
  const Plan plan = planned(problem({2, 6, 3, 129, 400, 64}), Arch::kSm90);
  ASSERT_EQ(plan.launches[0].step, "preprocess");
  EXPECT_EQ(plan.launches[0].entry->name, "preprocess_sm90_d64_bf16");
  expect_grid(plan.launches[0], 2 * 3, 6, 1);
  EXPECT_EQ(plan.launches[0].block.x, 256u);
  EXPECT_EQ(plan.launches[1].entry->name, "backward_sm90_d64_bf16_dense");
  expect_grid(plan.launches[1], 4 * 3 * 2, 1, 1);  // an item is a tile of keys of one key/value head
  EXPECT_EQ(plan.launches[1].block.x, 512u);
  EXPECT_EQ(plan.launches[1].shared_bytes, sizeof(sm90::backward::SharedMemory<1>));
  EXPECT_LE(plan.launches[1].shared_bytes, 232448u) << "what a CTA of sm_90 may have";
  EXPECT_EQ(plan.launches[2].entry->name, "postprocess_sm90_d64_bf16");
  expect_grid(plan.launches[2], 2 * 2, 6, 1);

  Target small(Arch::kSm90);
  small.multiprocessors = 7;
  expect_grid(planned(problem({2, 6, 3, 129, 400, 64}), small).launches[1], 7, 1, 1);
}

TEST(PlanSm90, WorkspacePartsFollowEachOther) {
  const Plan plan = planned(problem({1, 2, 1, 65, 1, 64}), Arch::kSm90);
  EXPECT_EQ(plan.workspace.part("stats").offset, 0u);
  EXPECT_EQ(plan.workspace.part("stats").bytes, 2u * 2 * 512);  // heads, tiles
  EXPECT_EQ(plan.workspace.part("dq_accum").offset, 2048u);
  EXPECT_EQ(plan.workspace.part("dq_accum").bytes, 2u * 2 * 16384);
  EXPECT_EQ(plan.workspace.part("next_ticket").offset, 67584u);
  EXPECT_EQ(plan.workspace.bytes, 67840u);
}

TEST(PlanSm90, ParametersCarryTheProblem) {
  Problem p = problem({2, 6, 3, 129, 400, 64});
  p.workspace = 0x100000;
  p.tensors.lse.data = 0x200000;
  const Plan plan = planned(p, Arch::kSm90);
  const auto& pre = std::get<common::PreprocessParameters>(plan.launches[0].parameters);
  const auto& main = std::get<sm90::backward::Parameters>(plan.launches[1].parameters);
  const auto& post = std::get<common::PostprocessParameters>(plan.launches[2].parameters);
  EXPECT_EQ(main.sequences.q.rows, 129);
  EXPECT_EQ(main.sequences.k.rows, 400);
  EXPECT_EQ(main.sequences.q.tiles, 3);
  EXPECT_EQ(main.sequences.k.tiles, 4);
  EXPECT_EQ(main.sequences.batch, 2);
  EXPECT_EQ(main.kv_heads, 3);
  EXPECT_EQ(main.group, 2);
  EXPECT_EQ(main.head_dim, 64);
  EXPECT_EQ(main.scale, 0.125f);
  EXPECT_FLOAT_EQ(main.scale_log2, 0.18033688f);
  EXPECT_EQ(main.stats, reinterpret_cast<const float*>(0x100000));
  EXPECT_EQ(main.dq_turns, nullptr);
  EXPECT_EQ(main.wide_dk.data, nullptr);
  EXPECT_EQ(pre.lse_log2, main.stats);
  EXPECT_EQ(pre.delta, main.stats + 64);
  EXPECT_EQ(pre.dq_accum, main.dq_accum);
  EXPECT_EQ(pre.zero, main.next_ticket);
  EXPECT_EQ(pre.lse.data, reinterpret_cast<const float*>(0x200000));
  EXPECT_EQ(post.accum, main.dq_accum);
  EXPECT_EQ(post.scale, 0.125f);
}

// As many blocks of key tiles as the multiprocessors need, all of a size.
TEST(PlanSm90, DeterministicKeyTilesBeginApart) {
  const auto rotation = [](Shape shape) {
    Problem p = problem(shape);
    p.deterministic = true;
    const Plan plan = planned(p, Arch::kSm90);
    EXPECT_EQ(plan.cleared.size(), 1u);
    EXPECT_EQ(plan.cleared[0].name, "dq_turns");
    return std::get<sm90::backward::Parameters>(plan.launches[1].parameters).rotation;
  };
  EXPECT_EQ(rotation({1, 1, 1, 100, 100, 64}), 1);
  EXPECT_EQ(rotation({1, 1, 1, 16384, 16384, 64}), 128);
  EXPECT_EQ(rotation({1, 1, 1, 32768, 32768, 64}), 128);  // of 256, on 132 multiprocessors
}

// Long sequences without order: CTAs in pairs, each item two tiles of keys.
TEST(PlanSm90, PairsForLongSequences) {
  const auto main_of = [](std::int64_t seqlen_k, Mask mask, bool deterministic = false) {
    Problem p;
    p.shape = {1, 2, 2, 256, seqlen_k, 64};
    p.mask = mask;
    p.deterministic = deterministic;
    p.tensors = packed_tensors(p.shape);
    return planned(p, Arch::kSm90).launches[1];
  };
  const PlannedLaunch pair = main_of(8192 + 1, Mask::kDense);
  EXPECT_EQ(pair.entry->name, "backward_sm90_d64_bf16_dense_pair");
  EXPECT_EQ(pair.cluster.x, 2u);
  expect_grid(pair, 2 * 66, 1, 1);  // 33 items of two heads
  EXPECT_EQ(main_of(8192 - 128, Mask::kDense).entry->name, "backward_sm90_d64_bf16_dense");
  EXPECT_EQ(main_of(8192, Mask::kDense, true).entry->name, "backward_sm90_d64_bf16_dense");
  // Who waits for turns must not wait for a CTA that has no multiprocessor.
  for (const Mask mask : {Mask(Mask::kDense), Mask(Mask::kCausal), Mask{100, 0}}) {
    EXPECT_TRUE(main_of(512, mask, true).together);
    EXPECT_FALSE(main_of(512, mask).together);
  }
  EXPECT_EQ(main_of(32768 - 128, Mask::kCausal).entry->name, "backward_sm90_d64_bf16_causal");
  EXPECT_EQ(main_of(32768, Mask::kCausal).entry->name, "backward_sm90_d64_bf16_causal_pair");
  EXPECT_EQ(main_of(32768, Mask{100, 0}).entry->name, "backward_sm90_d64_bf16_window");
  EXPECT_EQ(planned(problem({1, 32, 1, 256, 8192, 64}), Arch::kSm90).launches[1].entry->name,
            "backward_sm90_d64_bf16_dense")
      << "32 items of two tiles would leave half of the multiprocessors idle";
}

// Of a group's query heads an item has no more than suits the L2 cache, and few where items are few.
TEST(PlanSm90, PartsOfGroups) {
  const auto part_of = [](Shape shape, Mask mask, bool deterministic = false, bool ragged = false) {
    Problem p = problem(shape);
    p.mask = mask;
    p.deterministic = deterministic;
    if (ragged) p.k_sequences.seqused = 0x1000;
    const Plan plan = planned(p, Arch::kSm90);
    const auto has = [&](std::string_view name) {
      return std::any_of(plan.workspace.parts.begin(), plan.workspace.parts.end(),
                         [&](const WorkspacePart& part) { return part.name == name; });
    };
    for (const PlannedLaunch& launch : plan.launches) {
      if (launch.step != "main") continue;
      const auto& main = std::get<sm90::backward::Parameters>(launch.parameters);
      EXPECT_EQ(main.parts, (main.group + main.part_heads - 1) / main.part_heads);
      EXPECT_EQ(has("dk_accum"), main.parts > 1);
      EXPECT_EQ(has("dk_turns"), main.parts > 1 && deterministic);
      EXPECT_EQ(plan.maps.size(), main.parts > 1 ? 4u : 6u);
      return main.part_heads;
    }
    return 0;
  };
  const Mask window = {1024, 0};
  // Items enough: under a mask eight heads, without one the group.
  EXPECT_EQ(part_of({16, 32, 1, 4096, 4096, 64}, Mask::kCausal), 8);
  EXPECT_EQ(part_of({16, 32, 1, 4096, 4096, 64}, window), 8);
  EXPECT_EQ(part_of({16, 32, 1, 4096, 4096, 64}, Mask::kDense), 32);
  EXPECT_EQ(part_of({16, 32, 8, 4096, 4096, 64}, Mask::kCausal), 4);
  EXPECT_EQ(part_of({16, 11, 1, 4096, 4096, 64}, Mask::kCausal), 6) << "two parts of nearly equal size";
  // Few items: one round of 132 CTAs, under a causal mask two.
  EXPECT_EQ(part_of({1, 32, 1, 2048, 2048, 64}, Mask::kDense), 4);
  EXPECT_EQ(part_of({1, 32, 1, 2048, 2048, 64}, Mask::kCausal), 2);
  EXPECT_EQ(part_of({1, 32, 1, 2048, 2048, 64}, window), 4);
  EXPECT_EQ(part_of({1, 32, 8, 2048, 2048, 64}, Mask::kDense), 4);
  EXPECT_EQ(part_of({1, 32, 8, 512, 512, 64}, Mask::kCausal), 1);
  EXPECT_EQ(part_of({1, 32, 8, 128, 128, 64}, Mask::kCausal), 4) << "items of eight query tiles";
  // Parts that add in turn: the longer the items the more of them.
  const auto deterministic = [&](std::int64_t kv_heads, std::int64_t length) {
    return part_of({65536 / length, 32, kv_heads, length, length, 64}, Mask::kCausal, true);
  };
  EXPECT_EQ(deterministic(1, 1024), 8);
  EXPECT_EQ(deterministic(8, 1024), 4);
  EXPECT_EQ(deterministic(1, 2048), 4);
  EXPECT_EQ(deterministic(8, 2048), 2);
  EXPECT_EQ(deterministic(1, 4096), 2);
  EXPECT_EQ(deterministic(1, 16384), 1);
  EXPECT_EQ(part_of({1, 32, 1, 2048, 2048, 64}, Mask::kDense, true), 4);
  // What a sequence is packed with changes no bits of it.
  EXPECT_EQ(part_of({1, 32, 1, 2048, 2048, 64}, window, true, true), 8);
  EXPECT_EQ(part_of({1, 32, 1, 2048, 2048, 64}, Mask::kDense, true, true), 32);
  EXPECT_EQ(part_of({4, 32, 1, 16384, 16384, 128}, Mask::kCausal), 32) << "head dimension 128 knows none";
}

// Dense: head after head. Causal: as many heads as make two rounds of the 132 CTAs, if there are as many.
TEST(PlanSm90, SectionsOfHeads) {
  const auto section = [](Shape shape, Mask mask) {
    Problem p = problem(shape);
    p.mask = mask;
    return std::get<sm90::backward::Parameters>(planned(p, Arch::kSm90).launches[1].parameters).section;
  };
  EXPECT_EQ(section({4, 32, 32, 4096, 4096, 64}, Mask::kDense), 1);
  EXPECT_EQ(section({4, 32, 32, 4096, 4096, 64}, Mask::kCausal),
            10);                                                     // 264 / 32 tiles, fourteen times in 128
  EXPECT_EQ(section({1, 32, 32, 512, 512, 64}, Mask::kCausal), 32);  // all that there are
  EXPECT_EQ(section({1, 2, 2, 1 << 20, 1 << 20, 64}, Mask::kCausal), 1);
  // At head dim 128 no more than the L2 cache keeps.
  EXPECT_EQ(section({16, 16, 16, 4096, 4096, 128}, Mask::kCausal), 10);
  EXPECT_EQ(section({16, 16, 4, 4096, 4096, 128}, Mask::kCausal), 4);
  EXPECT_EQ(section({4, 16, 4, 16384, 16384, 128}, Mask::kCausal), 1);
  EXPECT_EQ(section({4, 16, 16, 16384, 16384, 128}, Mask::kDense), 1);
  EXPECT_EQ(section({4, 32, 1, 16384, 16384, 64}, Mask::kCausal), 4);  // not 3, and one that comes last
}

TEST(PlanSm90, Maps) {
  const Plan plan = planned(problem({2, 6, 3, 129, 400, 64}), Arch::kSm90);
  using P = sm90::backward::Parameters;
  const auto expect = [&](std::size_t which, const char* tensor, std::size_t offset,
                          std::vector<std::uint64_t> dims, std::uint32_t box_rows) {
    const PlannedMap& map = plan.maps[which];
    EXPECT_EQ(map.tensor, tensor);
    EXPECT_EQ(map.offset, offset) << tensor;
    EXPECT_EQ(std::vector<std::uint64_t>(map.request.dims, map.request.dims + 4), dims) << tensor;
    EXPECT_EQ(std::vector<std::uint32_t>(map.request.box, map.request.box + 4),
              (std::vector<std::uint32_t>{64, box_rows, 1, 1}))
        << tensor;
    EXPECT_EQ(map.request.swizzle, Swizzle::k128) << tensor;
  };
  expect(0, "q", offsetof(P, q), {64, 129, 6, 2}, 64);
  expect(1, "k", offsetof(P, k), {64, 400, 3, 2}, 128);
  expect(2, "v", offsetof(P, v), {64, 400, 3, 2}, 128);
  expect(3, "dout", offsetof(P, dout), {64, 129, 6, 2}, 64);
  expect(4, "dk", offsetof(P, dk), {64, 400, 3, 2}, 128);
  expect(5, "dv", offsetof(P, dv), {64, 400, 3, 2}, 128);
}

// Another kernel: copies are of 64 channels still, two make a tile, and gradients leave by 64 keys.
TEST(PlanSm90, HeadDimsUpTo128) {
  const Plan plan = planned(problem({1, 2, 1, 65, 200, 72}), Arch::kSm90);
  EXPECT_EQ(plan.launches[0].entry->name, "preprocess_sm90_d128_bf16");
  EXPECT_EQ(plan.launches[1].entry->name, "backward_sm90_d128_bf16_dense");
  EXPECT_EQ(plan.launches[1].shared_bytes, sizeof(sm90::backward_wide::SharedMemory));
  EXPECT_EQ(plan.launches[2].entry->name, "postprocess_sm90_d128_bf16");
  EXPECT_EQ(plan.workspace.part("dq_accum").bytes, 2u * 2 * 64 * 128 * 4);  // heads, tiles
  for (const PlannedMap& map : plan.maps) {
    EXPECT_EQ(map.request.dims[0], 72u) << map.tensor;
    EXPECT_EQ(map.request.box[0], 64u) << map.tensor;
    EXPECT_EQ(map.request.box[1], map.tensor == "k" || map.tensor == "v" ? 128u : 64u) << map.tensor;
  }
}

TEST(PlanSm90, TextNamesWhatRunsAndNoVariant) {
  const std::string text = to_text(planned(problem({2, 6, 3, 129, 400, 64}), Arch::kSm90));
  for (const char* part :
       {"head_dim 64, bf16, dense\n", "preprocess_sm90_d64_bf16", "postprocess_sm90_d64_bf16",
        "grid 24 x 1 x 1", "kv_heads 3, group 2 in parts of 2, sections of 1", "next_ticket"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " is missing in\n" << text;
  }
}

std::vector<std::string_view> steps_of_forward(Problem p, const Shape& shape) {
  p.direction = Direction::kForward;
  p.shape = shape;
  p.tensors = packed_tensors(shape);
  std::vector<std::string_view> steps;
  for (const PlannedLaunch& launch : planned(p, Arch::kSm90).launches) steps.push_back(launch.step);
  return steps;
}

// A launch more only where rows may see nothing, and one where sequences differ.
TEST(ForwardPlan, LaunchesWhatTheProblemAsksFor) {
  using Steps = std::vector<std::string_view>;
  Problem p;
  EXPECT_EQ(steps_of_forward(p, {2, 4, 2, 300, 100, 64}), Steps({"main"}));
  EXPECT_EQ(steps_of_forward(p, {2, 4, 2, 300, 0, 64}), Steps({"unseen"}));
  EXPECT_EQ(steps_of_forward(p, {2, 4, 2, 0, 300, 64}), Steps());
  EXPECT_EQ(steps_of_forward(p, {0, 4, 2, 300, 300, 64}), Steps());
  p.mask = Mask::kCausal;
  EXPECT_EQ(steps_of_forward(p, {2, 4, 2, 300, 300, 64}), Steps({"main"}));
  EXPECT_EQ(steps_of_forward(p, {2, 4, 2, 300, 299, 64}), Steps({"main", "unseen"}));
  p.q_sequences.seqused = 16;
  EXPECT_EQ(steps_of_forward(p, {2, 4, 2, 300, 300, 64}), Steps({"schedule", "main", "unseen"}));
}

TEST(ForwardPlan, PersistentCtasAndSections) {
  Problem p = problem({2, 4, 2, 1000, 500, 64});
  p.direction = Direction::kForward;
  Target target(Arch::kSm90);
  target.multiprocessors = 20;
  Plan plan = planned(p, target);
  expect_grid(plan.launches[0], 20, 1, 1);
  EXPECT_EQ(plan.launches[0].block.x, 512u);
  ASSERT_EQ(plan.cleared.size(), 1u);
  EXPECT_EQ(plan.cleared[0].name, "next_ticket");
  EXPECT_EQ(plan.maps.size(), 3u);
  EXPECT_EQ(std::get<common::ForwardParameters>(plan.launches[0].parameters).section, 1);
  p.mask = Mask{300, 0};
  p.scale = -0.5f;
  plan = planned(p, target);
  const auto& parameters = std::get<common::ForwardParameters>(plan.launches[0].parameters);
  EXPECT_EQ(parameters.section, 8)
      << "two rounds of 20 CTAs are 40 tiles; a head has 3 or 6, and there are 8";
  EXPECT_TRUE(parameters.negate_q);
  EXPECT_FLOAT_EQ(parameters.scale_log2, 0.5f * 1.442695f);
  target.multiprocessors = 200;
  EXPECT_EQ(planned(problem({2, 4, 4, 1000, 500, 64}), target).launches.size(), 3u) << "the backward pass";
}

TEST(ForwardPlan, OnBlackwellAnItemIs256Queries) {
  Problem p = problem({2, 4, 2, 1000, 500, 64});
  p.direction = Direction::kForward;
  const Plan plan = planned(p);
  expect_grid(plan.launches[0], 2 * 4 * 4, 1, 1);
  EXPECT_EQ(plan.launches[0].block.x, 512u);
  ASSERT_EQ(plan.maps.size(), 3u);
  EXPECT_EQ(plan.maps[0].request.box[1], 256u);
  EXPECT_EQ(plan.maps[1].request.box[1], 128u);
}

TEST(KernelTable, NamesAreUniqueAndTheImagesHoldThem) {
  std::map<const KernelImage*, std::string> texts;
  for (const KernelImage& image : kernel_images()) texts[&image] = testing::text_of(image);
  std::set<std::string> names;
  for (const Kernel& kernel : kernel_table()) {
    EXPECT_TRUE(names.insert(kernel.main.name).second) << kernel.main.name;
    for (const Entry* entry : {&kernel.schedule, &kernel.main, &kernel.pair, &kernel.preprocess, &kernel.sink,
                               &kernel.postprocess, &kernel.unseen}) {
      if (entry->name.empty()) continue;
      const KernelImage* image = entry->image;
      ASSERT_NE(image, nullptr) << entry->name;
      EXPECT_EQ(image->arch, kernel.arch);
      EXPECT_NE(texts[image].find(".entry " + entry->name + "("), std::string::npos) << entry->name;
      const std::string_view cubin(reinterpret_cast<const char*>(image->cubin.data()), image->cubin.size());
      EXPECT_NE(cubin.find(entry->name), std::string_view::npos) << entry->name;
    }
  }
  EXPECT_EQ(names.size(), 72u);
}

TEST(KernelTable, FindsTheRowOfEveryVariant) {
  for (const Kernel& kernel : kernel_table()) {
    Problem p = problem({1, 1, 1, 8, 8, kernel.head_dim});
    p.direction = kernel.direction;
    p.dtype = kernel.dtype;
    p.mask = kernel.mask == MaskKind::kDense    ? Mask::kDense
             : kernel.mask == MaskKind::kCausal ? Mask::kCausal
                                                : Mask{5, 6};
    if (kernel.tensor_memory) p.tensor_memory = *kernel.tensor_memory;
    if (kernel.signal) p.signal = *kernel.signal;
    EXPECT_EQ(find_kernel(kernel.arch, p), &kernel);
  }
}

}  // namespace
}  // namespace flashback
