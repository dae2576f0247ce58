// tcgen05.mma through its descriptors: every layout against its definition, with numbers that are exact in
// any order.
#include "emulator/machine/units/tensor_core.h"

#include <gtest/gtest.h>

#include <bit>
#include <random>

#include "emulator/machine/fault.h"
#include "tests/emulator/machine/ptx_bench.h"
#include "tests/emulator/machine/units/matrix_kernel.h"
#include "tests/emulator/machine/units/operand_layouts.h"

namespace flashback::emulator::testing {
namespace {

// Constants of kernels that run on hardware.
TEST(InstructionDescriptor, GoldenConstants) {
  struct Golden {
    std::uint32_t bits;
    int n;
    bool a_mn_major, b_mn_major, bf16;
  };
  for (const Golden& golden :
       {Golden{0x08200010, 128, false, false, false}, Golden{0x08110010, 64, false, true, false},
        Golden{0x08118010, 64, true, true, false}, Golden{0x08200490, 128, false, false, true},
        Golden{0x08110490, 64, false, true, true}, Golden{0x08118490, 64, true, true, true}}) {
    const MatrixShape shape = decode_instruction_descriptor(golden.bits);
    EXPECT_EQ(shape.m, 128);
    EXPECT_EQ(shape.n, golden.n);
    EXPECT_EQ(shape.a_mn_major, golden.a_mn_major);
    EXPECT_EQ(shape.b_mn_major, golden.b_mn_major);
    EXPECT_EQ(shape.a_is_bf16, golden.bf16);
    EXPECT_EQ(shape.b_is_bf16, golden.bf16);
  }
}

TEST(OperandDescriptor, GoldenConstants) {
  struct Golden {
    std::uint64_t bits;
    std::uint32_t leading, stride;
  };
  for (const Golden& golden : {Golden{0x4000404000010000, 16, 1024}, Golden{0x4000404000000000, 0, 1024},
                               Golden{0x4000404004000000, 16384, 1024}}) {
    const OperandDescriptor descriptor = decode_operand_descriptor(golden.bits | 0x123);
    EXPECT_EQ(descriptor.start, 0x1230u);
    EXPECT_EQ(descriptor.leading_bytes, golden.leading);
    EXPECT_EQ(descriptor.stride_bytes, golden.stride);
    EXPECT_EQ(descriptor.pattern_bytes, 128u);
  }
}

std::string refusal(std::uint32_t instruction) {
  try {
    decode_instruction_descriptor(instruction);
  } catch (const Misuse& misuse) {
    return misuse.what();
  }
  return "";
}

TEST(InstructionDescriptor, WrongBitsAreNamed) {
  const std::uint32_t good = 0x08200490;
  EXPECT_EQ(refusal(good), "");
  EXPECT_NE(refusal(good | 1u << 2).find("sparsity"), std::string::npos);
  EXPECT_NE(refusal(good | 1u << 3).find("saturation"), std::string::npos);
  EXPECT_NE(refusal(good & ~(1u << 4)).find("bits 4-5"), std::string::npos);
  EXPECT_NE(refusal(good | 1u << 6).find("reserved"), std::string::npos);
  EXPECT_NE(refusal(good | 2u << 7).find("bits 7-9"), std::string::npos);
  EXPECT_NE(refusal(good | 1u << 13).find("negation"), std::string::npos);
  EXPECT_NE(refusal(good | 1u << 23).find("reserved"), std::string::npos);
  EXPECT_NE(refusal((good & ~(31u << 24)) | 16u << 24).find("M / 16"), std::string::npos);
  EXPECT_NE(refusal(good & ~(63u << 17)).find("N / 8"), std::string::npos);
  EXPECT_NE(refusal(good | 1u << 30).find(".ws"), std::string::npos);
}

TEST(OperandDescriptor, WrongBitsAreNamed) {
  const std::uint64_t good = 0x4000404000010080;
  const auto refusal = [](std::uint64_t bits) -> std::string {
    try {
      decode_operand_descriptor(bits);
    } catch (const Misuse& misuse) {
      return misuse.what();
    }
    return "";
  };
  EXPECT_EQ(refusal(good), "");
  EXPECT_NE(refusal(good & ~(std::uint64_t{1} << 46)).find("bits 46-48 must be 1"), std::string::npos);
  EXPECT_NE(refusal(good | std::uint64_t{1} << 49).find("base offset"), std::string::npos);
  EXPECT_NE(refusal(good | std::uint64_t{1} << 52).find("bit 52"), std::string::npos);
  EXPECT_NE(refusal(good | std::uint64_t{1} << 14).find("must be 0"), std::string::npos);
  EXPECT_NE(refusal(good | std::uint64_t{1} << 61).find("swizzle"), std::string::npos);
}

struct Parameters {
  Address image, out, a_words;
  std::uint64_t a, b;  // descriptors; a is a column when A is in tensor memory
  std::uint32_t instruction, steps, a_advance, b_advance, columns, image_bytes, disabled, twice;
};

// Four warps. Thread 0 fetches the shared-memory image, issues `steps` multiplications and commits; then each
// warp reads its lanes. A in tensor memory is stored from `a_words`, 32 columns of 128 lanes, behind D.
std::string kernel(bool a_in_tensor_memory) {
  return module_of(
      sizeof(Parameters),
      fmt::format(R"(
.reg .b32 %m, %s, %t, %i, %v, %w, %thread, %warp, %idesc, %steps, %aadv, %badv, %n, %bytes, %disabled, %twice, %acol, %zero;
.reg .b64 %image, %out, %words, %a, %b, %at, %rd, %adv;
.reg .pred %first, %warp0, %more, %done, %accumulate, %again;
mov.u32 %thread, %tid.x;
shr.u32 %warp, %thread, 5;
setp.eq.u32 %first, %thread, 0;
setp.eq.u32 %warp0, %warp, 0;
ld.param.u64 %image, [p];
ld.param.u64 %out, [p+8];
ld.param.u64 %words, [p+16];
ld.param.u64 %a, [p+24];
ld.param.u64 %b, [p+32];
ld.param.u32 %idesc, [p+40];
ld.param.u32 %steps, [p+44];
ld.param.u32 %aadv, [p+48];
ld.param.u32 %badv, [p+52];
ld.param.u32 %n, [p+56];
ld.param.u32 %bytes, [p+60];
ld.param.u32 %disabled, [p+64];
ld.param.u32 %twice, [p+68];
mov.u32 %m, dynamic;
add.u32 %s, %m, 1024;
mov.u32 %zero, 0;
@!%warp0 bra READY;
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%m+16], 512;
@!%first bra READY;
mbarrier.init.shared::cta.b64 [%m], 1;
mbarrier.init.shared::cta.b64 [%m+8], 1;
fence.mbarrier_init.release.cluster;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%m], %bytes;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%s], [%image], %bytes, [%m];
READY:
bar.sync 0;
{}
bar.sync 0;
@!%first bra ISSUED;
FETCH:
mbarrier.try_wait.parity.shared::cta.b64 %done, [%m], 0;
@!%done bra FETCH;
setp.ne.u32 %again, %twice, 0;
setp.ne.u32 %accumulate, 0, 0;
cvt.u32.u64 %acol, %a;
STEP:
{}
{}
tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%m+8];
ISSUED:
DONE:
mbarrier.try_wait.parity.shared::cta.b64 %done, [%m+8], 0;
@!%done bra DONE;
{}
bar.sync 0;
@!%warp0 bra END;
tcgen05.dealloc.cta_group::1.sync.aligned.b32 0, 512;
END:
)",
                  a_in_tensor_memory ? kStoreA : "",
                  a_in_tensor_memory ? "tcgen05.mma.cta_group::1.kind::f16 [0], [%acol], %b, %idesc, {%zero, "
                                       "%disabled, %zero, %zero}, %accumulate;\n"
                                       "@%again tcgen05.mma.cta_group::1.kind::f16 [0], [%acol], %b, %idesc, "
                                       "{%zero, %disabled, %zero, %zero}, 1;"
                                     : "tcgen05.mma.cta_group::1.kind::f16 [0], %a, %b, %idesc, {%zero, "
                                       "%disabled, %zero, %zero}, %accumulate;\n"
                                       "@%again tcgen05.mma.cta_group::1.kind::f16 [0], %a, %b, %idesc, 1;",
                  kNextStep, kReadColumns));
}

struct Case {
  const char* name;
  int m, n, k;
  bool bf16, a_in_tensor_memory;
  Layout a, b;
  int a_advance, b_advance;  // bytes a step, columns when A is in tensor memory
};

class Layouts : public ::testing::TestWithParam<Case> {
 protected:
  static constexpr std::uint32_t kImage =
      2048;  // shared address of the image: 1 KiB behind dynamic memory's start
  static constexpr std::uint32_t kB = 65536;  // offset of B in it

  Layouts() : a_(static_cast<std::size_t>(128 * 64)), b_(static_cast<std::size_t>(256 * 64)) {
    std::mt19937 random(7);
    std::uniform_int_distribution<int> values(-8, 8);
    for (int& x : a_) x = values(random);
    for (int& x : b_) x = values(random);
  }
  int a(int m, int k) const { return a_[static_cast<std::size_t>(64 * m + k)]; }
  int b(int n, int k) const { return b_[static_cast<std::size_t>(64 * n + k)]; }

  // D by its definition, lane by lane; `unwritten` where no row lies.
  std::vector<float> expected(const Case& c, float unwritten) const {
    std::vector<float> d(static_cast<std::size_t>(128 * c.n), unwritten);
    for (int m = 0; m < c.m; ++m) {
      const int lane = c.m == 128 ? m : m % 16 + 32 * (m / 16);
      for (int n = 0; n < c.n; ++n) {
        int sum = 0;
        for (int k = 0; k < c.k; ++k) sum += a(m, k) * b(n, k);
        d[static_cast<std::size_t>(128 * n + lane)] = static_cast<float>(sum);
      }
    }
    return d;
  }

  Parameters parameters(const Case& c) {
    std::vector<std::uint16_t> image((kB + 65536) / 2);
    std::vector<std::uint32_t> words(32 * 128);
    for (int k = 0; k < c.k; ++k) {
      for (int m = 0; m < c.m; ++m) {
        const std::uint16_t bits = sixteen_bits(a(m, k), c.bf16);
        const int lane = c.m == 128 ? m : m % 16 + 32 * (m / 16);
        if (c.a_in_tensor_memory) {
          words[static_cast<std::size_t>(128 * (k / 2) + lane)] |= std::uint32_t{bits} << 16 * (k % 2);
        } else {
          image[c.a.address(m, k) / 2] = bits;
        }
      }
      for (int n = 0; n < c.n; ++n) image[(kB + c.b.address(n, k)) / 2] = sixteen_bits(b(n, k), c.bf16);
    }
    Parameters p{};
    p.image = bench_.upload(image);
    p.out = bench_.upload(std::vector<float>(static_cast<std::size_t>(128 * c.n)));
    p.a_words = bench_.upload(words);
    p.a = c.a_in_tensor_memory ? 256 : c.a.descriptor(kImage);
    p.b = c.b.descriptor(kImage + kB);
    p.instruction = 1u << 4 | (c.bf16 ? 1u << 7 | 1u << 10 : 0) | (c.a.major == Major::kMn ? 1u << 15 : 0) |
                    (c.b.major == Major::kMn ? 1u << 16 : 0) | static_cast<std::uint32_t>(c.n / 8) << 17 |
                    static_cast<std::uint32_t>(c.m / 16) << 24;
    p.steps = static_cast<std::uint32_t>(c.k / 16);
    p.a_advance = static_cast<std::uint32_t>(c.a_in_tensor_memory ? c.a_advance : c.a_advance >> 4);
    p.b_advance = static_cast<std::uint32_t>(c.b_advance >> 4);
    p.columns = static_cast<std::uint32_t>(c.n);
    p.image_bytes = static_cast<std::uint32_t>(2 * image.size());
    return p;
  }

  Status run(const Case& c, const Parameters& p) {
    return bench_.run(kernel(c.a_in_tensor_memory), p, {128, 1, 1}, {1, 1, 1}, 1024 + kB + 65536);
  }

  PtxBench bench_;
  std::vector<int> a_, b_;
};

TEST_P(Layouts, MultiplyAsTheManualLaysThemOut) {
  const Case& c = GetParam();
  const Parameters p = parameters(c);
  const Status status = run(c, p);
  ASSERT_TRUE(status.ok()) << status.sentence();
  const std::vector<float> got = bench_.download<float>(p.out, static_cast<std::size_t>(128 * c.n));
  const std::vector<float> want = expected(c, 0);
  for (int n = 0; n < c.n; ++n) {
    for (int lane = 0; lane < 128; ++lane) {
      if (c.m == 64 && lane / 16 % 2 == 1) continue;  // belongs to nobody
      ASSERT_EQ(got[static_cast<std::size_t>(128 * n + lane)], want[static_cast<std::size_t>(128 * n + lane)])
          << "column " << n << ", lane " << lane;
    }
  }
}

const Case kCases[] = {
    // The products of the attention gradient at head dim 64: S and dP, dV and dK, dQ.
    {"Scores", 128, 128, 64, true, false, k_major(128, 8, 512), k_major(128, 8, 512), 32, 32},
    {"FromTensorMemory", 128, 64, 64, true, true, k_major(128, 8, 512), mn_major(128, 0, 512), 8, 2048},
    {"Transposed", 128, 64, 64, true, false, mn_major(128, 8192, 512), mn_major(128, 0, 512), 2048, 2048},
    {"ScoresF16", 128, 128, 64, false, false, k_major(128, 8, 512), k_major(128, 8, 512), 32, 32},
    // Other swizzles and none, both majors.
    {"K64", 128, 256, 32, true, false, k_major(64, 8, 256), k_major(64, 8, 256), 32, 32},
    {"K32", 128, 16, 16, true, false, k_major(32, 8, 128), k_major(32, 8, 128), 0, 0},
    {"KNone", 128, 96, 16, false, false, k_major(16, 1024, 64), k_major(16, 2048, 64), 0, 0},
    {"Mn64", 128, 64, 16, true, false, mn_major(64, 1024, 256), mn_major(64, 2048, 256), 0, 0},
    {"Mn32", 128, 32, 16, true, false, mn_major(32, 512, 128), mn_major(32, 1024, 128), 0, 0},
    {"MnNone", 128, 40, 16, true, false, mn_major(16, 64, 128), mn_major(16, 4096, 64), 0, 0},
    {"Mn128Wide", 128, 256, 16, true, false, mn_major(128, 1024, 512), mn_major(128, 4096, 512), 0, 0},
    // Half height: row m lies in lane m % 16 + 32 * (m / 16).
    {"Half", 64, 128, 64, true, false, k_major(128, 8, 512), k_major(128, 8, 512), 32, 32},
    {"HalfTransposed", 64, 64, 32, false, false, mn_major(128, 0, 512), k_major(64, 8, 256), 2048, 32},
    {"HalfFromTensorMemory", 64, 8, 32, true, true, k_major(128, 8, 512), k_major(64, 8, 256), 8, 32},
};

INSTANTIATE_TEST_SUITE_P(All, Layouts, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

class OneLayout : public Layouts {};
INSTANTIATE_TEST_SUITE_P(All, OneLayout, ::testing::Values(kCases[0]),
                         [](const auto& info) { return info.param.name; });

TEST_P(OneLayout, DisabledLanesKeepWhatTheyHold) {
  const Case& c = GetParam();
  Parameters p = parameters(c);
  p.disabled = 0x80000001;  // lanes 32 and 63
  ASSERT_TRUE(run(c, p).ok());
  const std::vector<float> got = bench_.download<float>(p.out, static_cast<std::size_t>(128 * c.n));
  const std::vector<float> want = expected(c, 0);
  for (int n = 0; n < c.n; ++n) {
    for (int lane = 0; lane < 128; ++lane) {
      const float value = got[static_cast<std::size_t>(128 * n + lane)];
      if (lane == 32 || lane == 63) {
        ASSERT_EQ(std::bit_cast<std::uint32_t>(value), 0xffffffffu) << "column " << n << ", lane " << lane;
      } else {
        ASSERT_EQ(value, want[static_cast<std::size_t>(128 * n + lane)])
            << "column " << n << ", lane " << lane;
      }
    }
  }
}

TEST_P(OneLayout, AccumulatesWhenAsked) {
  const Case& c = GetParam();
  Parameters p = parameters(c);
  p.twice = 1;
  ASSERT_TRUE(run(c, p).ok());
  const std::vector<float> got = bench_.download<float>(p.out, static_cast<std::size_t>(128 * c.n));
  const std::vector<float> want = expected(c, 0);
  for (std::size_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], 2 * want[i]) << i;
}

// Each of these bits matters: with it wrong the result is another or the machine refuses.
TEST_P(OneLayout, WrongDescriptorBitsShow) {
  const Case& c = GetParam();
  const Parameters right = parameters(c);
  const std::vector<float> want = expected(c, 0);
  const auto differs = [&](const Parameters& p) {
    if (!run(c, p).ok()) return true;
    return bench_.download<float>(p.out, want.size()) != want;
  };
  EXPECT_FALSE(differs(right));
  for (const int bit : {0, 1, 7, 38, 46, 49, 61, 62, 63}) {
    Parameters wrong = right;
    wrong.a ^= std::uint64_t{1} << bit;
    EXPECT_TRUE(differs(wrong)) << "bit " << bit << " of A's descriptor";
    wrong = right;
    wrong.b ^= std::uint64_t{1} << bit;
    EXPECT_TRUE(differs(wrong)) << "bit " << bit << " of B's descriptor";
  }
  for (const int bit : {4, 7, 10, 13, 15, 16, 21, 24, 26, 27}) {
    Parameters wrong = right;
    wrong.instruction ^= 1u << bit;
    EXPECT_TRUE(differs(wrong)) << "bit " << bit << " of the instruction descriptor";
  }
}

TEST_P(OneLayout, OperandOutsideSharedMemory) {
  const Case& c = GetParam();
  Parameters p = parameters(c);
  p.b = c.b.descriptor(kImage + kB + 65536 - 1024);
  EXPECT_NE(run(c, p).sentence().find("an operand of tcgen05.mma of 16 bytes at shared address"),
            std::string::npos);
}

}  // namespace
}  // namespace flashback::emulator::testing
