// What nvcc embeds in a program: a container of PTX texts and machine code for several architectures.
//
//     header    u32 magic 0xba55ed50, u16 version 1, u16 header bytes, u64 bytes of the entries
//     entries   each a header and, at once after it, the image:
//               u16 kind (1: PTX, 2: machine code), u16 version, u32 header bytes, u64 image bytes,
//               u32 compressed bytes (0: not compressed), ..., at 28: u32 architecture (100)
#pragma once

#include <cstddef>
#include <string_view>

#include "emulator/cuda/gpu.h"

namespace flashback::emulator::cuda {

// True for what begins as a container does.
bool is_fat_binary(const void* image);

// Whether `gpu` runs PTX of this target, such as sm_80, sm_100f or sm_100a.
bool runs(std::string_view target, const Gpu& gpu);

// The PTX in it that `gpu` runs best: that of its very architecture (sm_100a), else of its family (sm_100f),
// else of the newest that any later one runs (sm_80). Refuses with the reason when there is none.
std::string_view choose_ptx(const void* fat_binary, const Gpu& gpu);

}  // namespace flashback::emulator::cuda
