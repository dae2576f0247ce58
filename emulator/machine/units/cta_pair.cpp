#include "emulator/machine/units/cta_pair.h"

#include <fmt/format.h>

#include "emulator/machine/cluster.h"

namespace flashback::emulator {

Cta& peer_of(Cta& cta, const char* what) {
  const std::uint32_t rank = cta.rank() ^ 1;
  if (rank >= cta.cluster().size()) {
    throw Misuse(
        fmt::format("{} with cta_group::2 by rank {} of a cluster of {} CTA{}; rank {} would be its peer",
                    what, cta.rank(), cta.cluster().size(), cta.cluster().size() == 1 ? "" : "s", rank));
  }
  Cta& peer = cta.cluster().cta(rank);
  if (peer.exited()) {
    throw Misuse(
        fmt::format("{} with cta_group::2, and the other CTA of the pair, rank {} of the cluster, has "
                    "exited",
                    what, rank));
  }
  return peer;
}

CtaPair pair_of(Cta& cta, const char* what) {
  Cta& peer = peer_of(cta, what);
  return cta.rank() % 2 == 0 ? CtaPair{cta, peer} : CtaPair{peer, cta};
}

PairAnswer ask_in_pair(Cta& cta, const TensorMemory::PairRequest& request, std::uint32_t* first) {
  using Kind = TensorMemory::PairRequest::Kind;
  TensorMemory& memory = cta.tensor_memory;
  TensorMemory::PairRequest& mine = memory.pair_request;
  if (mine.kind == Kind::kNone) mine = request;
  if (mine.warp != request.warp) return PairAnswer::kPeerIsMissing;  // another warp of this CTA comes first
  if (!mine.granted) {
    const bool allocates = mine.kind == Kind::kAllocate;
    Cta& peer = peer_of(cta, allocates ? "tcgen05.alloc" : "tcgen05.dealloc");
    TensorMemory::PairRequest& theirs = peer.tensor_memory.pair_request;
    if (theirs.kind == Kind::kNone || theirs.granted) return PairAnswer::kPeerIsMissing;
    if (theirs.kind != mine.kind || theirs.columns != mine.columns || theirs.first != mine.first) {
      const auto words = [](const TensorMemory::PairRequest& r) {
        return r.kind == Kind::kAllocate ? fmt::format("allocates {} columns", r.columns)
                                         : fmt::format("releases {} columns from {} on", r.columns, r.first);
      };
      throw Misuse(fmt::format("this CTA {}, the other one of the pair {}; both must ask for the same",
                               words(mine), words(theirs)));
    }
    if (allocates) {
      const std::uint32_t got = TensorMemory::allocate_in_both(memory, peer.tensor_memory, mine.columns);
      if (got == TensorMemory::kColumns) return PairAnswer::kNoColumns;
      mine.first = theirs.first = got;
    } else {
      for (TensorMemory* of : {&memory, &peer.tensor_memory}) {
        if (of->release(mine.first, mine.columns)) continue;
        throw Misuse(
            fmt::format("{} columns from tensor memory address {:#010x} on, which are not all allocated",
                        mine.columns, mine.first));
      }
    }
    mine.granted = theirs.granted = true;
  }
  *first = mine.first;
  mine = {};
  return PairAnswer::kGranted;
}

}  // namespace flashback::emulator
