// The PTX of an image for tests that read or change it.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "device/device.h"
#include "device/ptx_text.h"

namespace flashback::testing {

inline std::string text_of(const KernelImage& image) {
  std::string text;
  const Status status = ptx_text(image.ptx, &text);
  EXPECT_TRUE(status.ok()) << image.name << ": " << status.sentence();
  return text;
}

}  // namespace flashback::testing
