// clusterlaunchcontrol.try_cancel as the grid's scheduler does it.
#include <fmt/format.h>

#include <cstring>

#include "emulator/machine/cluster.h"
#include "emulator/machine/mbarrier_access.h"
#include "emulator/machine/units/work_queue.h"

namespace flashback::emulator {
namespace {

constexpr std::uint32_t kBytes = sizeof(LaunchResponse);

// Calls f(owner, address, mbarrier) for each CTA that gets the response.
template <class F>
void each_receiver(Cta& cta, const LaunchRequest& request, F&& f) {
  if (!request.to_all) return f(cta, request.address, request.mbarrier);
  for (std::uint32_t rank = 0; rank < cta.cluster().size(); ++rank) {
    f(cta.cluster().cta(rank), on_rank(request.address, rank), on_rank(request.mbarrier, rank));
  }
}

}  // namespace

void check(Cta& cta, const LaunchRequest& request) {
  if (request.address % kBytes != 0 || request.mbarrier % 8 != 0) {
    throw Misuse(
        fmt::format("the response at shared address {:#x} and the mbarrier at {:#x}; they must be "
                    "multiples of {} and 8",
                    request.address, request.mbarrier, kBytes));
  }
  cta.shared(request.address, kBytes, "the response of a try_cancel");
  cta.shared(request.mbarrier, 8, "an mbarrier");
}

void perform(Cta& cta, const LaunchRequest& request) {
  const std::optional<Dim3> first = cta.cluster().cancel_next();
  LaunchResponse response{};
  if (first) response = {{first->x, first->y, first->z}, 1};
  each_receiver(cta, request, [&](Cta& owner, std::uint32_t address, std::uint32_t) {
    std::memcpy(cta.cluster_shared(address, kBytes, "the response of a try_cancel"), &response, kBytes);
    if (cta.observer() == nullptr) [[likely]]
      return;
    const ByteRange range{on_rank(address, 0), kBytes};
    cta.observer()->accessed(OperationAccess{request.by.operation, &owner, Use::kWrite, {&range, 1}});
  });
  if (cta.observer() != nullptr) [[unlikely]]
    cta.observer()->ended(request.by.operation);
  each_receiver(cta, request, [&](Cta& owner, std::uint32_t, std::uint32_t mbarrier) {
    MbarrierAccess(owner, mbarrier, user_of(cta, request.by)).complete(kBytes);
  });
}

}  // namespace flashback::emulator
