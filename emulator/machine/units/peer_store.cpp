// st.async and red.async: a few bytes into the shared memory of another CTA, then complete_tx on an mbarrier
// there.
#include <fmt/format.h>

#include <cstring>

#include "emulator/machine/cluster.h"
#include "emulator/machine/mbarrier_access.h"
#include "emulator/machine/units/work_queue.h"

namespace flashback::emulator {

void check(Cta& cta, const PeerStore& store) {
  const char* name = store.combine == nullptr ? "st.async" : "red.async";
  if (cta.cluster().size() == 1) throw Misuse(fmt::format("{} in a cluster of one CTA", name));
  if (store.address % store.bytes != 0) {
    throw Misuse(fmt::format("{} of {} bytes at shared address {:#x}, which is not a multiple of {}", name,
                             store.bytes, store.address, store.bytes));
  }
  if (store.mbarrier % 8 != 0) {
    throw Misuse(
        fmt::format("an mbarrier at shared address {:#x}, which is not a multiple of 8", store.mbarrier));
  }
  if (rank_of(store.address) != rank_of(store.mbarrier)) {
    throw Misuse(
        fmt::format("{} to rank {} of the cluster with an mbarrier in rank {}; both must be in one CTA", name,
                    rank_of(store.address), rank_of(store.mbarrier)));
  }
  if (store.combine != nullptr && rank_of(store.address) == cta.rank())
    throw Misuse("red.async to the CTA's own shared memory; the destination must be another CTA's");
  cta.cluster_shared(store.address, store.bytes, name);
  cta.cluster_shared(store.mbarrier, 8, "an mbarrier");
}

void perform(Cta& cta, const PeerStore& store) {
  check(cta, store);  // the CTA may have exited since the issue
  std::byte* to = cta.shared(store.address);
  if (store.combine == nullptr) {
    std::memcpy(to, store.values, store.bytes);
  } else {
    std::uint64_t value = 0, old = 0;
    std::memcpy(&value, store.values, store.bytes);
    std::memcpy(&old, to, store.bytes);
    const std::uint64_t next = store.combine(value, old);
    std::memcpy(to, &next, store.bytes);
  }
  Cta& owner = cta.cluster().cta(rank_of(store.address));
  if (Observer* observer = cta.observer()) [[unlikely]] {
    const ByteRange range{on_rank(store.address, 0), store.bytes};
    const Use use = store.combine == nullptr ? Use::kWrite : Use::kReadWrite;
    observer->accessed(OperationAccess{store.by.operation, &owner, use, {&range, 1}});
    observer->ended(store.by.operation);
  }
  MbarrierAccess(owner, store.mbarrier, user_of(cta, store.by)).complete(store.bytes);
}

}  // namespace flashback::emulator
