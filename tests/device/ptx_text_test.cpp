// Images hold compressed PTX; what is damaged is refused in a sentence.
#include "device/ptx_text.h"

#include <gtest/gtest.h>

#include "kernels/images.h"

namespace flashback {
namespace {

std::string compressed() {
  return std::string(kernel_images()[0].ptx);
}

void expect_damaged(const std::string& ptx) {
  std::string text;
  const Status status = ptx_text(ptx, &text);
  EXPECT_EQ(status.code(), Code::kInvalid);
  EXPECT_NE(status.sentence().find("is damaged at byte"), std::string::npos) << status.sentence();
}

TEST(PtxText, IsSmallInTheImagesAndWholeOutOfThem) {
  for (const KernelImage& image : kernel_images()) {
    std::string text;
    const Status status = ptx_text(image.ptx, &text);
    ASSERT_TRUE(status.ok()) << image.name << ": " << status.sentence();
    EXPECT_LT(6 * image.ptx.size(), text.size()) << image.name;
    EXPECT_NE(text.find(".target sm_"), std::string::npos) << image.name;
    EXPECT_EQ(text[text.find_last_not_of("\n")], '}') << image.name;
  }
}

TEST(PtxText, ThatIsNotCompressedIsLeftAsItIs) {
  std::string text;
  ASSERT_TRUE(ptx_text(".version 9.0\n", &text).ok());
  EXPECT_EQ(text, ".version 9.0\n");
  ASSERT_TRUE(ptx_text("", &text).ok());
  EXPECT_EQ(text, "");
}

TEST(PtxText, RefusesWhatIsDamaged) {
  std::string ptx = compressed();
  ptx[ptx.size() / 2] ^= 1;
  expect_damaged(ptx);
  expect_damaged(compressed().substr(0, 10));
  expect_damaged(compressed().substr(0, compressed().size() / 2));
  expect_damaged(compressed() + "more");
  ptx = compressed();
  ptx[ptx.size() - 4] ^= 1;  // its length
  expect_damaged(ptx);
  ptx = compressed();
  ptx.back() = '\x7f';  // 2 GB
  expect_damaged(ptx);
}

}  // namespace
}  // namespace flashback
