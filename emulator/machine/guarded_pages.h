// Memory on pages of its own, between two pages that cannot be touched.
#pragma once

#include <cstddef>

namespace flashback::emulator {

// Null when the host has no memory for it. It holds 0xff bytes: NaN in every floating-point format.
std::byte* map_guarded_pages(std::size_t bytes);
void unmap_guarded_pages(std::byte* memory, std::size_t bytes);

}  // namespace flashback::emulator
