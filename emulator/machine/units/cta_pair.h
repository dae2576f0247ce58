// Pairs of CTAs, whose ranks differ in the lowest bit: what tcgen05 with cta_group::2 works on.
#pragma once

#include <cstdint>

#include "emulator/machine/cta.h"

namespace flashback::emulator {

// The other CTA of the pair. Throws Misuse, naming `what`, where there is none or it has exited.
Cta& peer_of(Cta& cta, const char* what);

struct CtaPair {
  Cta& even;
  Cta& odd;
  Cta& operator[](int i) const { return i == 0 ? even : odd; }
};
CtaPair pair_of(Cta& cta, const char* what);

// Columns of tensor memory are allocated and released in both CTAs at once, by a warp of each. To be called
// again until it is granted; `first` is set when columns are allocated.
enum class PairAnswer { kGranted, kPeerIsMissing, kNoColumns };
PairAnswer ask_in_pair(Cta& cta, const TensorMemory::PairRequest& request, std::uint32_t* first);

}  // namespace flashback::emulator
