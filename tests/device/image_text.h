// The PTX of an image for tests that read or change it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "device/device.h"
#include "device/ptx_text.h"
#include "kernels/images.h"

namespace flashback::testing {

// Null where this build has none of that name.
inline const KernelImage* find_image(std::string_view name) {
  const auto images = kernel_images();
  const auto image = std::ranges::find(images, name, &KernelImage::name);
  return image == images.end() ? nullptr : &*image;
}

inline std::string text_of(const KernelImage& image) {
  std::string text;
  const Status status = ptx_text(image.ptx, &text);
  EXPECT_TRUE(status.ok()) << image.name << ": " << status.sentence();
  return text;
}

}  // namespace flashback::testing
