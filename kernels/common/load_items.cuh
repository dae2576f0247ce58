// The load role of the forward kernels: one thread of a persistent CTA.
#pragma once

#include <type_traits>

#include "kernels/common/forward.h"
#include "kernels/ptx/mark.cuh"
#include "kernels/shared/load_tile.cuh"
#include "kernels/tile/ring.h"

namespace flashback::common {

// Takes tickets, finds what each stands for, and loads its queries and, from the last one on, the tiles of
// keys and values that they see: at least one, for queries that see no key are nobody's work (sight_of).
// `SharedMemory` has the rings work, q, k and v and their barriers; `find_work` writes the work of a ticket.
template <int key_rows, class SharedMemory, class FindWork>
__device__ void load_items(const ForwardParameters& p, SharedMemory& sm, const FindWork& find_work) {
  ptx::prefetch_tensor_map(&p.q);
  ptx::prefetch_tensor_map(&p.k);
  ptx::prefetch_tensor_map(&p.v);
  tile::RingPosition<std::extent_v<decltype(SharedMemory::work)>> work_at;
  tile::RingPosition<std::extent_v<decltype(SharedMemory::q)>> q_at;
  tile::RingPosition<std::extent_v<decltype(SharedMemory::k)>> key_at;
  ptx::Coordinates5 at;  // of the tile of keys
  const auto load_values = [&] {
    wait(sm.v_empty[key_at.slot], key_at.empty());
    shared::load_tile(sm.v[key_at.slot], p.v, at, sm.v_full[key_at.slot]);
    key_at.advance();
  };
  bool values_left = false;  // the last ones of the item before
  for (int ticket = static_cast<int>(blockIdx.x);; values_left = true) {
    wait(sm.work_empty[work_at.slot], work_at.empty());
    auto& work = sm.work[work_at.slot];
    find_work(p, ticket, work);
    arrive(sm.work_full[work_at.slot]);
    work_at.advance();
    if (values_left) load_values();
    if (work.batch < 0) return;

    const shared::Sequences& s = p.sequences;
    FLASHBACK_MARK("Q");
    wait(sm.q_empty[q_at.slot], q_at.empty());
    shared::load_tile(sm.q[q_at.slot], p.q,
                      shared::at_row(s.q, work.sight.q, work.row, work.head, work.batch),
                      sm.q_full[q_at.slot]);
    q_at.advance();
    const shared::TileRange visited = work.visited();
    at = shared::at_row(s.k, work.sight.k, visited.end * key_rows, work.head / p.group, work.batch);
#pragma unroll 1
    for (int tiles = visited.end - visited.begin;; --tiles) {
      at.row -= key_rows;
      FLASHBACK_MARK("K, V");
      wait(sm.k_empty[key_at.slot], key_at.empty());
      shared::load_tile(sm.k[key_at.slot], p.k, at, sm.k_full[key_at.slot]);
      if (tiles == 1) break;
      load_values();
    }
    // Only now, so that tickets begin in their order. The way to the counter, and finding the work, is
    // covered by the wait for the stage of the item's last values, which nobody needs before their weights.
    ticket = static_cast<int>(gridDim.x) + ptx::take_number(p.next_ticket);
  }
}

}  // namespace flashback::common
