// The map of the kernel: tensor memory, shared memory, registers.
#include <gtest/gtest.h>

#include "kernels/images.h"
#include "kernels/sm100/backward/config.h"
#include "tests/device/image_text.h"

namespace flashback::sm100::backward {
namespace {

TEST(TensorColumns, AreThoseOfTheAliasedAndTheSplitMap) {
  const auto expect = [](tile::Columns columns, int first, int end) {
    EXPECT_EQ(columns.first, first);
    EXPECT_EQ(columns.end(), end);
  };
  for (TensorMemory map : {TensorMemory::kAliased, TensorMemory::kSplit}) {
    const TensorColumns c = tensor_columns(map);
    expect(c.s, 0, 128);
    expect(c.dv, 128, 192);
    expect(c.dp, 192, 320);
    expect(c.dq, 192, 256);
    expect(c.dk, 320, 384);
  }
  expect(kAliasedColumns.p, 0, 64);
  expect(kAliasedColumns.ds, 192, 256);
  expect(kSplitColumns.p, 384, 448);
  expect(kSplitColumns.ds, 448, 512);
}

TEST(SharedMemory, PlacesEveryBuffer) {
  EXPECT_EQ(offsetof(SharedMemory<64>, q), 0u);
  EXPECT_EQ(offsetof(SharedMemory<64>, k), 32768u);
  EXPECT_EQ(offsetof(SharedMemory<64>, v), 49152u);
  EXPECT_EQ(offsetof(SharedMemory<64>, dout), 65536u);
  EXPECT_EQ(offsetof(SharedMemory<64>, ds), 81920u);
  EXPECT_EQ(offsetof(SharedMemory<64>, dq), 114688u);
  EXPECT_EQ(offsetof(SharedMemory<64>, lse), 147456u);
  EXPECT_EQ(offsetof(SharedMemory<64>, delta), 148480u);
  EXPECT_EQ(offsetof(SharedMemory<64>, q_full), 148992u);
  EXPECT_EQ(shared_bytes(64), sizeof(SharedMemory<64>));
  EXPECT_LE(shared_bytes(64), 149504u + 128);  // and the work
  EXPECT_LE(shared_bytes(128), 227u * 1024);   // what a CTA may have
}

TEST(Roles, AddUpToTheCta) {
  int count[5] = {};
  for (int warp = 0; warp < kThreads / 32; ++warp) ++count[static_cast<int>(role_of(warp))];
  EXPECT_EQ(count[static_cast<int>(Role::kReduce)], 4);
  EXPECT_EQ(count[static_cast<int>(Role::kCompute)], 8);
  EXPECT_EQ(count[static_cast<int>(Role::kMultiply)], 1);
  EXPECT_EQ(count[static_cast<int>(Role::kLoad)], 1);
  EXPECT_EQ(count[static_cast<int>(Role::kNone)], 2);
}

TEST(Registers, FillTheFileAndAreLegal) {
  for (Mask mask : {Mask::kDense, Mask::kCausal}) {
    const Registers r = registers(mask);
    EXPECT_EQ(r.reduce + 2 * r.compute + r.others, 512);
    for (int value : {r.reduce, r.compute, r.others}) {
      EXPECT_EQ(value % 8, 0);
      EXPECT_GE(value, 24);
      EXPECT_LE(value, 256);
    }
  }
}

TEST(Images, HoldTheEntriesAsPtxAndCubin) {
  const auto find = [](std::string_view name) -> const KernelImage* {
    for (const KernelImage& image : kernel_images()) {
      if (image.name == name) return &image;
    }
    return nullptr;
  };
  const KernelImage* backward = find("sm100_backward");
  const KernelImage* common = find("sm100_common");
  ASSERT_NE(backward, nullptr);
  ASSERT_NE(common, nullptr);
  const auto has_entry = [](const KernelImage& image, const std::string& ptx, const std::string& entry) {
    const std::string_view cubin(reinterpret_cast<const char*>(image.cubin.data()), image.cubin.size());
    return ptx.find(".entry " + entry + "(") != std::string::npos &&
           cubin.find(".text." + entry) != std::string_view::npos &&
           cubin.starts_with(
               "\x7f"
               "ELF");
  };
  const std::string backward_ptx = testing::text_of(*backward), common_ptx = testing::text_of(*common);
  for (const char* mask : {"dense", "causal"}) {
    for (const char* map : {"aliased", "split"}) {
      for (const char* signal : {"cta", "warp"}) {
        EXPECT_TRUE(has_entry(*backward, backward_ptx,
                              std::string("backward_sm100_d64_bf16_") + mask + "_" + map + "_" + signal));
      }
    }
  }
  EXPECT_TRUE(has_entry(*common, common_ptx, "preprocess_sm100_d64_bf16"));
  EXPECT_TRUE(has_entry(*common, common_ptx, "postprocess_sm100_d64_bf16"));
}

TEST(Images, NameNoDirectoryOfTheMachine) {
  for (const KernelImage& image : kernel_images()) {
    const std::string text = testing::text_of(image);
    EXPECT_EQ(text.find(FLASHBACK_SOURCE_DIR), std::string::npos) << image.name;
    EXPECT_EQ(text.find("\"/"), std::string::npos) << image.name;
  }
}

}  // namespace
}  // namespace flashback::sm100::backward
