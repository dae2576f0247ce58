// tcgen05.mma with cta_group::2: both layouts of D over the pair, every source of the operands, against the
// definition, with numbers that are exact in any order.
#include <gtest/gtest.h>

#include <bit>
#include <random>

#include "tests/emulator/machine/ptx_bench.h"
#include "tests/emulator/machine/units/matrix_kernel.h"
#include "tests/emulator/machine/units/operand_layouts.h"

namespace flashback::emulator::testing {
namespace {

struct Parameters {
  Address image, out, a_words;
  std::uint64_t a, b;  // descriptors; a is a column when A is in tensor memory
  std::uint32_t instruction, steps, a_advance, b_advance, columns, image_bytes, issuer, even_disabled,
      odd_disabled;
};

// Two CTAs of four warps. Each fetches its image and stores its part of A where that is in tensor memory;
// when both are ready, thread 0 of rank `issuer` multiplies for the two and commits to both. Each warp then
// reads its lanes.
std::string kernel(bool a_in_tensor_memory) {
  return module_of(
      sizeof(Parameters),
      fmt::format(
          R"(
.reg .b32 %m, %s, %i, %v, %w, %thread, %warp, %idesc, %steps, %aadv, %badv, %n, %bytes, %issuer, %acol, %zero, %rank, %even, %odd;
.reg .b64 %image, %out, %words, %a, %b, %at, %rd, %adv;
.reg .b16 %both;
.reg .pred %first, %warp0, %more, %done, %accumulate, %issues;
mov.u32 %thread, %tid.x;
mov.u32 %rank, %cluster_ctarank;
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
ld.param.u32 %issuer, [p+64];
ld.param.u32 %even, [p+68];
ld.param.u32 %odd, [p+72];
setp.eq.and.u32 %issues, %rank, %issuer, %first;
mul.wide.u32 %rd, %rank, %bytes;
add.s64 %image, %image, %rd;
mul.wide.u32 %rd, %rank, 16384;
add.s64 %words, %words, %rd;
mul.lo.u32 %v, %n, 512;
mul.wide.u32 %rd, %rank, %v;
add.s64 %out, %out, %rd;
mov.u32 %m, dynamic;
add.u32 %s, %m, 1024;
mov.u32 %zero, 0;
mov.b16 %both, 3;
@!%warp0 bra READY;
tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%m+16], 512;
tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;
@!%first bra READY;
mbarrier.init.shared::cta.b64 [%m], 1;
mbarrier.init.shared::cta.b64 [%m+8], 1;
fence.mbarrier_init.release.cluster;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%m], %bytes;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%s], [%image], %bytes, [%m];
READY:
bar.sync 0;
{}
FETCH:
mbarrier.try_wait.parity.shared::cta.b64 %done, [%m], 0;
@!%done bra FETCH;
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
tcgen05.fence::after_thread_sync;
@!%issues bra ISSUED;
setp.ne.u32 %accumulate, 0, 0;
cvt.u32.u64 %acol, %a;
STEP:
{}
{}
tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%m+8], %both;
ISSUED:
DONE:
mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %done, [%m+8], 0;
@!%done bra DONE;
{}
tcgen05.fence::before_thread_sync;
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
@!%warp0 bra END;
tcgen05.dealloc.cta_group::2.sync.aligned.b32 0, 512;
END:
)",
          a_in_tensor_memory ? kStoreA : "",
          a_in_tensor_memory
              ? "tcgen05.mma.cta_group::2.kind::f16 [0], [%acol], %b, %idesc, %accumulate;"
              : "tcgen05.mma.cta_group::2.kind::f16 [0], %a, %b, %idesc, {%zero, %even, %zero, %zero, "
                "%zero, %zero, %odd, %zero}, %accumulate;",
          kNextStep, kReadColumns));
}

struct Case {
  const char* name;
  int m, n, k;
  bool bf16, a_in_tensor_memory;
  Layout a, b;               // of the part of one CTA
  int a_advance, b_advance;  // bytes a step, columns when A is in tensor memory
};

class Pairs : public ::testing::TestWithParam<Case> {
 protected:
  static constexpr std::uint32_t kImage = 2048;  // shared address, 1 KiB behind dynamic memory's start
  static constexpr std::uint32_t kB = 32768, kImageBytes = 65536;

  Pairs() : a_(256 * 64), b_(256 * 64) {
    std::mt19937 random(11);
    std::uniform_int_distribution<int> values(-8, 8);
    for (int& x : a_) x = values(random);
    for (int& x : b_) x = values(random);
  }
  int a(int m, int k) const { return a_[static_cast<std::size_t>(64 * m + k)]; }
  int b(int n, int k) const { return b_[static_cast<std::size_t>(64 * n + k)]; }
  static int d_columns(const Case& c) { return c.m == 256 ? c.n : c.n / 2; }

  // D by its definition: for each CTA, column by column, lane by lane.
  std::vector<float> expected(const Case& c) const {
    std::vector<float> d;
    for (int cta = 0; cta < 2; ++cta) {
      for (int column = 0; column < d_columns(c); ++column) {
        for (int lane = 0; lane < 128; ++lane) {
          const int m = c.m == 256 ? 128 * cta + lane : 64 * cta + lane % 64;
          const int n = c.m == 256 || lane < 64 ? column : c.n / 2 + column;
          int sum = 0;
          for (int k = 0; k < c.k; ++k) sum += a(m, k) * b(n, k);
          d.push_back(static_cast<float>(sum));
        }
      }
    }
    return d;
  }

  Parameters parameters(PtxBench& bench, const Case& c) const {
    std::vector<std::uint16_t> image(kImageBytes);  // of both CTAs, 2 bytes an element
    std::vector<std::uint32_t> words(2 * 32 * 128);
    for (int cta = 0; cta < 2; ++cta) {
      std::uint16_t* of_cta = image.data() + cta * kImageBytes / 2;
      for (int k = 0; k < c.k; ++k) {
        for (int row = 0; row < c.m / 2; ++row) {
          const std::uint16_t bits = sixteen_bits(a(c.m / 2 * cta + row, k), c.bf16);
          if (!c.a_in_tensor_memory) {
            of_cta[c.a.address(row, k) / 2] = bits;
            continue;
          }
          // With 64 rows both halves of the lanes hold them.
          for (int lane = row; lane < 128; lane += c.m / 2) {
            words[static_cast<std::size_t>(4096 * cta + 128 * (k / 2) + lane)] |= std::uint32_t{bits}
                                                                                  << 16 * (k % 2);
          }
        }
        for (int n = 0; n < c.n / 2; ++n) {
          of_cta[(kB + c.b.address(n, k)) / 2] = sixteen_bits(b(c.n / 2 * cta + n, k), c.bf16);
        }
      }
    }
    Parameters p{};
    p.image = bench.upload(image);
    p.out = bench.upload(std::vector<float>(static_cast<std::size_t>(2 * 128 * d_columns(c))));
    p.a_words = bench.upload(words);
    p.a = c.a_in_tensor_memory ? 256 : c.a.descriptor(kImage);
    p.b = c.b.descriptor(kImage + kB);
    p.instruction = 1u << 4 | (c.bf16 ? 1u << 7 | 1u << 10 : 0) | (c.a.major == Major::kMn ? 1u << 15 : 0) |
                    (c.b.major == Major::kMn ? 1u << 16 : 0) | static_cast<std::uint32_t>(c.n / 8) << 17 |
                    static_cast<std::uint32_t>(c.m / 16) << 24;
    p.steps = static_cast<std::uint32_t>(c.k / 16);
    p.a_advance = static_cast<std::uint32_t>(c.a_in_tensor_memory ? c.a_advance : c.a_advance >> 4);
    p.b_advance = static_cast<std::uint32_t>(c.b_advance >> 4);
    p.columns = static_cast<std::uint32_t>(d_columns(c));
    p.image_bytes = kImageBytes;
    return p;
  }

  static Status run(PtxBench& bench, const Case& c, const Parameters& p) {
    return bench.run(kernel(c.a_in_tensor_memory), p, {128, 1, 1}, {2, 1, 1}, 1024 + kImageBytes, {2, 1, 1});
  }
  static std::vector<float> result(PtxBench& bench, const Case& c, const Parameters& p) {
    return bench.download<float>(p.out, static_cast<std::size_t>(2 * 128 * d_columns(c)));
  }

  std::vector<int> a_, b_;
};

TEST_P(Pairs, MultiplyAsOne) {
  const Case& c = GetParam();
  for (const Completion completion : {Completion::kEager, Completion::kLazy, Completion::kRandom}) {
    for (const std::uint32_t issuer : {0u, 1u}) {
      PtxBench bench(with(completion, 3));
      Parameters p = parameters(bench, c);
      p.issuer = issuer;
      const Status status = run(bench, c, p);
      ASSERT_TRUE(status.ok()) << status.sentence();
      const std::vector<float> got = result(bench, c, p), want = expected(c);
      for (std::size_t i = 0; i < want.size(); ++i) {
        ASSERT_EQ(got[i], want[i]) << "issuer " << issuer << ", completion " << static_cast<int>(completion)
                                   << ", column " << i / 128 << " of both, lane " << i % 128;
      }
    }
  }
}

const Case kCases[] = {
    // M = 256: 128 rows a CTA, all columns of D in each.
    {"Wide", 256, 256, 64, true, false, k_major(128, 8, 512), k_major(128, 8, 512), 32, 32},
    {"WideF16", 256, 64, 64, false, false, k_major(128, 8, 512), k_major(128, 8, 512), 32, 32},
    {"WideTransposed", 256, 128, 32, true, false, mn_major(128, 4096, 512), mn_major(128, 0, 512), 2048,
     2048},
    {"WideFromTensorMemory", 256, 128, 64, true, true, k_major(128, 8, 512), k_major(128, 8, 512), 8, 32},
    {"WideSmall", 256, 16, 16, true, false, k_major(16, 1024, 64), k_major(16, 64, 64), 0, 0},
    // M = 128: 64 rows a CTA, in both halves of the lanes.
    {"Tall", 128, 256, 64, true, false, k_major(128, 8, 512), k_major(128, 8, 512), 32, 32},
    {"TallF16", 128, 32, 16, false, false, k_major(32, 8, 128), k_major(32, 8, 128), 0, 0},
    {"TallTransposed", 128, 128, 32, true, false, mn_major(128, 0, 512), mn_major(128, 0, 512), 2048, 2048},
    {"TallFromTensorMemory", 128, 64, 64, true, true, k_major(128, 8, 512), k_major(128, 8, 512), 8, 32},
};
INSTANTIATE_TEST_SUITE_P(All, Pairs, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

class OnePair : public Pairs {};
INSTANTIATE_TEST_SUITE_P(All, OnePair, ::testing::Values(kCases[0], kCases[5]),
                         [](const auto& info) { return info.param.name; });

TEST_P(OnePair, DisabledLanesKeepWhatTheyHold) {
  const Case& c = GetParam();
  PtxBench bench;
  Parameters p = parameters(bench, c);
  p.even_disabled = 0x80000001;  // lanes 32 and 63 of the even CTA
  p.odd_disabled = 0x00000010;   // lane 68 of the odd one
  ASSERT_TRUE(run(bench, c, p).ok());
  const std::vector<float> got = result(bench, c, p), want = expected(c);
  for (std::size_t i = 0; i < want.size(); ++i) {
    const bool odd = i >= want.size() / 2;
    const std::size_t lane = i % 128;
    const bool disabled = odd ? lane == 68 : lane == 32 || lane == 63;
    if (disabled) {
      ASSERT_EQ(std::bit_cast<std::uint32_t>(got[i]), 0xffffffffu) << i;
    } else {
      ASSERT_EQ(got[i], want[i]) << i;
    }
  }
}

TEST_P(OnePair, DescriptorsThatAPairDoesNotHave) {
  const Case& c = GetParam();
  PtxBench bench;
  const Parameters right = parameters(bench, c);
  Parameters p = right;
  p.instruction = (p.instruction & ~(31u << 24)) | 4u << 24;
  EXPECT_NE(run(bench, c, p).sentence().find("must be 8 or 16 for cta_group::2"), std::string::npos);
  p = right;
  p.instruction = (p.instruction & ~(63u << 17)) | 3u << 17;
  EXPECT_NE(run(bench, c, p).sentence().find("must be even, 2 to 32, for cta_group::2"), std::string::npos);
}

}  // namespace
}  // namespace flashback::emulator::testing
