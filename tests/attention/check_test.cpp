// Every rule of check.cpp: a problem that breaks only it, and the sentence.
#include "attention/check.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "attention/launch.h"

namespace flashback {
namespace {

Problem acceptable() {
  Problem p;
  p.shape = {.batch = 2, .heads = 3, .kv_heads = 3, .seqlen_q = 100, .seqlen_k = 200, .head_dim = 64};
  p.tensors = packed_tensors(p.shape);
  Address next = 0x7f0000000000;
  for (Address* address :
       {&p.tensors.q.data, &p.tensors.k.data, &p.tensors.v.data, &p.tensors.out.data, &p.tensors.dout.data,
        &p.tensors.lse.data, &p.tensors.dq.data, &p.tensors.dk.data, &p.tensors.dv.data, &p.workspace}) {
    *address = next;
    next += 1 << 24;
  }
  p.workspace_bytes = 1 << 24;
  return p;
}

Status check(const Problem& problem, Arch arch = Arch::kSm100) {
  Plan plan;
  return make_bound_plan(arch, problem, &plan);
}

struct Refusal {
  const char* rule;
  Code code;
  std::function<void(Problem&)> breach;
  const char* sentence;
};

void PrintTo(const Refusal& refusal, std::ostream* out) {
  *out << refusal.rule;
}

class Refused : public testing::TestWithParam<Refusal> {};

TEST_P(Refused, InWords) {
  Problem p = acceptable();
  GetParam().breach(p);
  const Status s = check(p);
  EXPECT_EQ(s.code(), GetParam().code);
  EXPECT_EQ(s.sentence(), GetParam().sentence);
}

const Refusal kShapes[] = {
    {"batch", Code::kInvalid, [](Problem& p) { p.shape.batch = -1; },
     "batch is -1; it must not be negative; nearest accepted: 0"},
    {"heads", Code::kInvalid, [](Problem& p) { p.shape.heads = -4; },
     "heads is -4; it must be at least 1; nearest accepted: 1"},
    {"kv_heads", Code::kInvalid, [](Problem& p) { p.shape.kv_heads = 0; },
     "kv_heads is 0; it must be at least 1; nearest accepted: 1"},
    {"head_dim_negative", Code::kUnsupported, [](Problem& p) { p.shape.head_dim = -64; },
     "head_dim is -64; no backward kernel for sm100 takes it yet; accepted: multiples of 8 up to 128"},
    {"head_dim", Code::kUnsupported, [](Problem& p) { p.shape.head_dim = 136; },
     "head_dim is 136; no backward kernel for sm100 takes it yet; accepted: multiples of 8 up to 128"},
    {"head_dim_huge", Code::kUnsupported, [](Problem& p) { p.shape.head_dim = (1LL << 32) + 64; },
     "head_dim is 4294967360; no backward kernel for sm100 takes it yet; accepted: multiples of 8 up to 128"},
    {"seqlen_q_negative", Code::kInvalid, [](Problem& p) { p.shape.seqlen_q = -1; },
     "seqlen_q is -1; it must not be negative; nearest accepted: 0"},
    {"seqlen_k_huge", Code::kUnsupported, [](Problem& p) { p.shape.seqlen_k = 1LL << 31; },
     "seqlen_k is 2147483648; the kernels count in 30 bits; nearest accepted: 1073741824"},
    {"window_left", Code::kInvalid, [](Problem& p) { p.mask.left = -2; },
     "window.left is -2; it must be -1, which is no bound, or a number of keys from 0 on; nearest accepted: "
     "-1"},
    {"window_right", Code::kInvalid, [](Problem& p) { p.mask.right = -9; },
     "window.right is -9; it must be -1, which is no bound, or a number of keys from 0 on; nearest accepted: "
     "-1"},
    {"accumulate", Code::kInvalid, [](Problem& p) { p.accumulate = true; },
     "accumulate is 1; gradients are summed in fp32 only; accepted: 0, or 1 with fp32_gradients"},
    {"kv_heads_divides", Code::kInvalid, [](Problem& p) { p.shape.kv_heads = 2; },
     "kv_heads is 2; it must divide heads, which is 3; nearest accepted: 3"},
    {"head_dim_odd", Code::kUnsupported, [](Problem& p) { p.shape.head_dim = 20; },
     "head_dim is 20; no backward kernel for sm100 takes it yet; accepted: multiples of 8 up to 128"},
    {"heads_grid", Code::kUnsupported, [](Problem& p) { p.shape.heads = p.shape.kv_heads = 70000; },
     "heads is 70000; a launch takes at most 65535; nearest accepted: 65535 (split the call)"},
    {"more_heads_than_can_be_tried", Code::kUnsupported,
     [](Problem& p) {
       p.shape.heads = std::numeric_limits<std::int64_t>::max();
       p.shape.kv_heads = 2;
     },
     "heads is 9223372036854775807; a launch takes at most 65535; nearest accepted: 65535 (split the call)"},
    {"tiles_grid", Code::kUnsupported,
     [](Problem& p) {
       p.shape.batch = 1 << 20;
       p.shape.seqlen_k = 1 << 19;
     },
     "batch 1048576 with seqlen_k 524288 makes 4294967296 tiles of 128 rows; a launch takes at most "
     "2147483647; split the call"},
    {"tiles_counter", Code::kUnsupported,
     [](Problem& p) {
       p.shape.batch = 1 << 30;
       p.deterministic = true;
     },
     "batch 1073741824 with seqlen_q 100 makes 1073741824 tiles of 128 rows; a launch takes at most "
     "715827882 of 3 heads; split the call"},
    {"workspace_overflow", Code::kInvalid,
     [](Problem& p) {
       p.shape.batch = 255;
       p.shape.heads = p.shape.kv_heads = 65535;
       p.shape.seqlen_q = 1LL << 30;
       p.shape.head_dim = 64;
     },
     "batch 255 with heads 65535, seqlen_q 1073741824 and seqlen_k 200 needs more than 2^61 bytes of "
     "workspace; split the call"},
    {"scale_nan", Code::kInvalid, [](Problem& p) { p.scale = std::nanf(""); },
     "scale is nan; it must be finite; accepted: 0, which means 1 / sqrt(head_dim), or a number"},
    {"scale_infinite", Code::kInvalid, [](Problem& p) { p.scale = -std::numeric_limits<float>::infinity(); },
     "scale is -inf; it must be finite; accepted: 0, which means 1 / sqrt(head_dim), or a number"},
};

const Refusal kTensors[] = {
    {"null", Code::kInvalid, [](Problem& p) { p.tensors.k.data = 0; },
     "k.data is null; it must point to device memory"},
    {"null_lse", Code::kInvalid, [](Problem& p) { p.tensors.lse.data = 0; },
     "lse.data is null; it must point to device memory"},
    {"null_dv", Code::kInvalid, [](Problem& p) { p.tensors.dv.data = 0; },
     "dv.data is null; it must point to device memory"},
    {"alignment", Code::kInvalid, [](Problem& p) { p.tensors.dout.data = 0x7f0000000008; },
     "dout.data is 0x7f0000000008; it must be a multiple of 16 bytes; nearest accepted: 0x7f0000000000"},
    {"alignment_lse", Code::kInvalid, [](Problem& p) { p.tensors.lse.data = 0x7f0000000002; },
     "lse.data is 0x7f0000000002; it must be a multiple of 4 bytes; nearest accepted: 0x7f0000000000"},
    {"stride", Code::kInvalid, [](Problem& p) { p.tensors.q.row_stride = 196; },
     "q.row_stride is 196; it must be from 0 to 549755813880 elements and a multiple of 8; nearest accepted: "
     "192"},
    {"stride_negative", Code::kInvalid, [](Problem& p) { p.tensors.v.head_stride = -64; },
     "v.head_stride is -64; it must be from 0 to 549755813880 elements and a multiple of 8; nearest "
     "accepted: 0"},
    {"stride_huge", Code::kInvalid, [](Problem& p) { p.tensors.out.batch_stride = 1LL << 39; },
     "out.batch_stride is 549755813888; it must be from 0 to 549755813880 elements and a multiple of 8; "
     "nearest "
     "accepted: "
     "549755813880"},
    {"stride_lse", Code::kInvalid, [](Problem& p) { p.tensors.lse.head_stride = -1; },
     "lse.head_stride is -1; it must be from 0 to 549755813880 elements; nearest accepted: "
     "0"},
    {"reach", Code::kInvalid,
     [](Problem& p) {
       p.shape.seqlen_k = 1 << 28;
       p.tensors.k.row_stride = (1LL << 39) - 8;
     },
     "k reaches past the end of the address space with its strides; they are in elements"},
    {"overlap_rows", Code::kInvalid, [](Problem& p) { p.tensors.dq.row_stride = 128; },
     "dq.row_stride is 128; elements of an output must not overlap, and the axes inside this one cover 192 "
     "elements; "
     "nearest accepted: 192"},
    {"overlap_broadcast", Code::kInvalid, [](Problem& p) { p.tensors.dk.batch_stride = 0; },
     "dk.batch_stride is 0; elements of an output must not overlap, and the axes inside this one cover 64 "
     "elements; "
     "nearest accepted: 64"},
    {"same_output", Code::kInvalid, [](Problem& p) { p.tensors.dk.data = p.tensors.dv.data; },
     "dk.data and dv.data are both 0x7f0008000000; an output needs memory of its own"},
    {"in_place", Code::kInvalid, [](Problem& p) { p.tensors.dq.data = p.tensors.q.data; },
     "dq.data and q.data are both 0x7f0000000000; an output needs memory of its own"},
    {"same_sink", Code::kInvalid, [](Problem& p) { p.tensors.sink = p.tensors.dsink = 0x7f0020000000; },
     "dsink and sink are both 0x7f0020000000; an output needs memory of its own"},
    {"sink_alone", Code::kInvalid, [](Problem& p) { p.tensors.sink = 0x7f0020000000; },
     "dsink is null; it must point to device memory, because sink is given"},
    {"dsink_alone", Code::kInvalid, [](Problem& p) { p.tensors.dsink = 0x7f0020000000; },
     "dsink is given, but sink is null; accepted: both, or neither"},
    {"alignment_dlse", Code::kInvalid, [](Problem& p) { p.tensors.dlse.data = 0x7f0020000001; },
     "dlse.data is 0x7f0020000001; it must be a multiple of 4 bytes; nearest accepted: 0x7f0020000000"},
    {"alignment_cu_seqlens", Code::kInvalid, [](Problem& p) { p.q_sequences.cu_seqlens = 0x7f0020000002; },
     "cu_seqlens_q is 0x7f0020000002; it must be a multiple of 4 bytes; nearest accepted: 0x7f0020000000"},
    {"alignment_seqused", Code::kInvalid, [](Problem& p) { p.k_sequences.seqused = 0x7f0020000002; },
     "seqused_k is 0x7f0020000002; it must be a multiple of 4 bytes; nearest accepted: 0x7f0020000000"},
    {"stride_fp32", Code::kInvalid,
     [](Problem& p) {
       p.fp32_gradients = true;
       p.tensors.dq.row_stride = 194;
     },
     "dq.row_stride is 194; it must be from 0 to 549755813880 elements and a multiple of 4; nearest "
     "accepted: 192"},
    {"room_before", Code::kUnsupported,
     [](Problem& p) {
       p.q_sequences.seqused = 0x7f0020000000;
       p.tensors.q.row_stride = 1LL << 39;
       p.tensors.q.row_stride -= 8;
       p.tensors.q.data = 4096;
     },
     "q.row_stride is 549755813880; its 100 rows with cu_seqlens or seqused must span fewer bytes than the "
     "address 0x1000 has before it"},
    {"workspace_null", Code::kInvalid, [](Problem& p) { p.workspace = 0; },
     "workspace is null; it must point to device memory"},
    {"workspace_alignment", Code::kInvalid, [](Problem& p) { p.workspace += 128; },
     "workspace is 0x7f0009000080; it must be a multiple of 256 bytes; nearest accepted: 0x7f0009000000"},
    {"workspace_bytes", Code::kInvalid, [](Problem& p) { p.workspace_bytes = 202751; },
     "workspace_bytes is 202751; this problem needs at least 202752 (flashback_backward_workspace tells)"},
};

std::string rule(const testing::TestParamInfo<Refusal>& info) {
  return info.param.rule;
}
INSTANTIATE_TEST_SUITE_P(Shape, Refused, testing::ValuesIn(kShapes), rule);
INSTANTIATE_TEST_SUITE_P(Tensors, Refused, testing::ValuesIn(kTensors), rule);

TEST(Check, AcceptsTheProblemThatTheRefusalsStartFrom) {
  EXPECT_EQ(check(acceptable()).sentence(), "");
}

TEST(CheckSm90, TakesGroupsOfQueryHeads) {
  Problem p = acceptable();
  p.workspace_bytes = 1 << 26;
  for (std::int64_t kv_heads : {3, 1}) {
    p.shape.kv_heads = kv_heads;
    p.tensors.dk = p.tensors.dv = {0, 200 * 64 * kv_heads, 64 * kv_heads, 64};
    p.tensors.dk.data = 0x7f0010000000;
    p.tensors.dv.data = 0x7f0020000000;
    EXPECT_EQ(check(p, Arch::kSm90).sentence(), "");
  }
  p.shape.heads = 12;
  p.shape.kv_heads = 5;
  const Status s = check(p, Arch::kSm90);
  EXPECT_EQ(s.code(), Code::kInvalid);
  EXPECT_EQ(s.sentence(), "kv_heads is 5; it must divide heads, which is 12; nearest accepted: 6");
}

TEST(CheckSm90, KnowsNoVariants) {
  Problem p = acceptable();
  p.tensor_memory = TensorMemory::kAliased;
  Status s = check(p, Arch::kSm90);
  EXPECT_EQ(s.code(), Code::kUnsupported);
  EXPECT_EQ(s.sentence(),
            "tensor_memory is aliased; the kernel for sm90 has no variants; accepted: split, the default");
  p.tensor_memory = TensorMemory::kSplit;
  p.signal = Signal::kCta;
  s = check(p, Arch::kSm90);
  EXPECT_EQ(s.sentence(), "signal is cta; the kernel for sm90 has no variants; accepted: warp, the default");
}

TEST(CheckSm90, CountsTilesOfKeysIn31Bits) {
  Problem p = acceptable();
  p.shape = {.batch = 1 << 12, .heads = 1 << 12, .kv_heads = 1 << 12, .seqlen_q = 1, .seqlen_k = 1 << 14};
  const Status s = check(p, Arch::kSm90);
  EXPECT_EQ(s.code(), Code::kUnsupported);
  EXPECT_EQ(s.sentence(),
            "batch 4096 with kv_heads 4096 and seqlen_k 16384 makes more than 2147479551 tiles of 128 keys, "
            "which the kernel for sm90 cannot number; split the call");
}

TEST(Check, TheShapeNeedsNoTensors) {
  Problem p = acceptable();
  p.tensors = {};
  p.workspace = 0;
  Plan plan;
  EXPECT_EQ(make_plan(Arch::kSm100, p, &plan).sentence(), "");
}

TEST(Check, IgnoresTheStrideOfAnAxisOfSizeOne) {
  Problem p = acceptable();
  p.shape.batch = p.shape.heads = p.shape.kv_heads = 1;
  p.tensors.q.batch_stride = -7;
  p.tensors.dq.head_stride = 3;
  p.tensors.lse.batch_stride = -1;
  EXPECT_EQ(check(p).sentence(), "");
}

TEST(Check, AcceptsHeadsOutsideRowsAndBroadcastInputs) {
  Problem p = acceptable();
  p.tensors.q = {
      .data = p.tensors.q.data, .batch_stride = 3 * 100 * 64, .row_stride = 64, .head_stride = 100 * 64};
  p.tensors.dq = {
      .data = p.tensors.dq.data, .batch_stride = 3 * 100 * 64, .row_stride = 64, .head_stride = 100 * 64};
  p.tensors.dout.batch_stride = 0;
  EXPECT_EQ(check(p).sentence(), "");
}

TEST(Check, AcceptsGradientsInterleavedInOnePackedTensor) {
  Problem p = acceptable();
  p.shape.seqlen_k = p.shape.seqlen_q;
  const std::int64_t row = 3 * 3 * 64;  // of dq, dk and dv, three heads each
  const Address base = p.tensors.dq.data;
  p.tensors.dq = {.data = base, .batch_stride = 100 * row, .row_stride = row, .head_stride = 64};
  p.tensors.dk = {.data = base + 2 * 192, .batch_stride = 100 * row, .row_stride = row, .head_stride = 64};
  p.tensors.dv = {.data = base + 2 * 384, .batch_stride = 100 * row, .row_stride = row, .head_stride = 64};
  EXPECT_EQ(check(p).sentence(), "");
}

}  // namespace
}  // namespace flashback
