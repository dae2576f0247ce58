// clusterlaunchcontrol: a cluster that runs asks for the work of one that has not started. The response is
// opaque to programs: LaunchResponse is this machine's.
#include "emulator/machine/cta.h"
#include "emulator/machine/execute/lanes.h"
#include "emulator/machine/execute/predicates.h"
#include "emulator/machine/execute/rows.h"
#include "emulator/machine/execute/shared_address.h"
#include "emulator/machine/units/footprint.h"

namespace flashback::emulator {
namespace {

template <class Width, bool kToAll>
void try_cancel(Warp& warp, const Step& step, LaneMask mask) {
  each_lane(mask, [&](int l) {
    LaunchRequest request;
    request.by = {&step, static_cast<std::uint8_t>(warp.index()), static_cast<std::uint8_t>(l)};
    request.address = shared_address<Width>(warp, step, step.a, step.immediate, l);
    request.mbarrier = shared_address<Width>(warp, step, step.b, 0, l);
    request.to_all = kToAll;
    check(warp.cta(), request);
    request.by.operation = announce(warp, step, LaneMask{1} << l, Operation::Kind::kLaunchRequest,
                                    sizeof(LaunchResponse), &warp.cta(), on_rank(request.mbarrier, 0));
    warp.cta().work.submit(request);
  });
}

template <bool kToAll>
Body by_width(Match& match) {
  if (match.bytes('a') != match.bytes('b')) return nullptr;
  return match.bytes('a') == 8 ? try_cancel<u64, kToAll> : try_cancel<u32, kToAll>;
}

Body select_request(Match& match) {
  return match.has(".multicast::cluster::all") ? by_width<true>(match) : by_width<false>(match);
}

void is_cancelled(Warp& warp, const Step& step, LaneMask mask) {
  const LaunchResponse* response = warp.lanes<LaunchResponse>(step.a);
  warp.set_predicate(step.d, collect([&](int l) { return response[l].cancelled != 0; }), mask);
}

// The fourth element is not defined: 0 here.
void first_cta(Warp& warp, const Step& step, LaneMask mask) {
  const LaunchResponse* response = warp.lanes<LaunchResponse>(step.a);
  for (int i = 0; i < 4; ++i) {
    if (step.list[i] == kNone) continue;
    u32* d = warp.lanes<u32>(step.list[i]);
    each_lane(mask, [&](int l) { d[l] = i < 3 ? response[l].first_cta[i] : 0; });
  }
}

template <int dimension>
void first_cta_along(Warp& warp, const Step& step, LaneMask mask) {
  const LaunchResponse* response = warp.lanes<LaunchResponse>(step.a);
  u32* d = warp.lanes<u32>(step.d);
  each_lane(mask, [&](int l) { d[l] = response[l].first_cta[dimension]; });
}

Body select_dimension(Match& match) {
  const std::string_view dimension = match.choice(0);
  return dimension == "x" ? first_cta_along<0> : dimension == "y" ? first_cta_along<1> : first_cta_along<2>;
}

#define QUERY "clusterlaunchcontrol.query_cancel"

constexpr Row kRows[] = {
    {"clusterlaunchcontrol.try_cancel.async{.shared::cta}.mbarrier::complete_tx::bytes{.multicast::cluster::"
     "all}"
     ".b128",
     "[a], [b]", select_request},
    {QUERY ".is_canceled.pred.b128", "d:p, a:r128", always<is_cancelled>},
    {QUERY ".get_first_ctaid.v4.b32.b128", "list:{r32}x4, a:r128", always<first_cta>},
    {QUERY ".get_first_ctaid(::x|::y|::z).b32.b128", "d:r32, a:r128", select_dimension},
};

}  // namespace

std::span<const Row> launch_control_rows() {
  return kRows;
}

}  // namespace flashback::emulator
