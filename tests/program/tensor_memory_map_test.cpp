// The drawing, character by character, of the two maps of the head-dim-64 kernel and of one with a gap in the
// middle.
#include "program/tensor_memory_map.h"

#include <gtest/gtest.h>

namespace flashback::program {
namespace {

TEST(TensorMemoryMap, Aliased) {
  const TensorMemoryTile tiles[] = {{"S", 0, 128, true},   {"dV", 128, 64, true}, {"dP", 192, 128, true},
                                    {"dK", 320, 64, true}, {"P", 0, 64, false},   {"dS", 192, 64, false},
                                    {"dQ", 192, 64, true}};
  EXPECT_EQ(draw_tensor_memory(tiles, 512),
            R"(         0               128     192             320     384             512
         +---------------+-------+---------------+-------+---------------+
  fp32   |       S       |  dV   |      dP       |  dK   |    unused     |
         +-------+-------+-------+-------+-------+-------+---------------+
  16 bit |   P   |               | dS dQ |               |    unused     |
         +-------+---------------+-------+---------------+---------------+
         0       64              192     256             384             512

  S    [  0, 128)  fp32
  dV   [128, 192)  fp32
  dP   [192, 320)  fp32
  dK   [320, 384)  fp32
  P    [  0,  64)  16 bit, over S
  dS   [192, 256)  16 bit, over dP
  dQ   [192, 256)  fp32, over dP
       [384, 512)  unused
)");
}

TEST(TensorMemoryMap, Split) {
  const TensorMemoryTile tiles[] = {{"S", 0, 128, true},   {"dV", 128, 64, true}, {"dP", 192, 128, true},
                                    {"dK", 320, 64, true}, {"P", 384, 64, false}, {"dS", 448, 64, false},
                                    {"dQ", 192, 64, true}};
  EXPECT_EQ(draw_tensor_memory(tiles, 512), R"(         0               128     192             320     384
         +---------------+-------+---------------+-------+---------------+
  fp32   |       S       |  dV   |      dP       |  dK   |               |
         +---------------+-------+-------+-------+-------+-------+-------+
  16 bit |                       |  dQ   |               |   P   |  dS   |
         +-----------------------+-------+---------------+-------+-------+
                                 192     256             384     448     512

  S    [  0, 128)  fp32
  dV   [128, 192)  fp32
  dP   [192, 320)  fp32
  dK   [320, 384)  fp32
  P    [384, 448)  16 bit
  dS   [448, 512)  16 bit
  dQ   [192, 256)  fp32, over dP
)");
}

TEST(TensorMemoryMap, GapInTheMiddle) {
  const TensorMemoryTile tiles[] = {{"A", 0, 64, true}, {"B", 128, 128, true}};
  EXPECT_EQ(draw_tensor_memory(tiles, 256), R"(         0       64      128             256
         +-------+-------+---------------+
  fp32   |   A   |unused |       B       |
         +-------+-------+---------------+
  16 bit |       |unused |               |
         +-------+-------+---------------+
                 64      128

  A    [  0,  64)  fp32
  B    [128, 256)  fp32
       [ 64, 128)  unused
)");
}

}  // namespace
}  // namespace flashback::program
