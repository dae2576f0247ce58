// What two CTAs that share the dQ of an item do besides: tickets for both, and the way of dS into the peer.
#pragma once

#include "kernels/ptx/bulk.cuh"
#include "kernels/ptx/cluster.cuh"
#include "kernels/ptx/mark.cuh"
#include "kernels/ptx/sync.cuh"
#include "kernels/sm90/backward/work.cuh"

namespace flashback::sm90::backward {

// Waits where the peer of a pair arrives as well.
template <int ctas>
__device__ __forceinline__ void wait_for_peer(ptx::Barrier& barrier, std::uint32_t parity) {
  if constexpr (ctas == 1) {
    wait(barrier, parity);
  } else {
    ptx::wait_for_cluster(barrier, parity);
  }
}

// Where the tickets of a CTA come from. Of a pair the leader, rank 0, takes each for both.
template <Config config>
struct Tickets {
  const Parameters& p;
  SharedMemory<config.ctas>& sm;
  int rank;
  RingPosition<kTicketStages> at = {};

  __device__ int first() const { return static_cast<int>(blockIdx.x) / config.ctas; }
  __device__ int next(int ticket) {
    if constexpr (config.ctas == 1) {
      return next_ticket(p, ticket);
    } else {
      const int all = static_cast<int>(gridDim.x) / config.ctas;
      if (rank == 0) {
        ticket = all + ptx::take_number(p.next_ticket);
        ptx::wait_for_cluster(sm.of_peer.ticket_empty[at.slot], at.empty());
        ptx::store_at(1, sm.of_peer.ticket[at.slot], ticket);
        ptx::arrive_at(1, sm.of_peer.ticket_full[at.slot]);
      } else {
        ptx::wait_for_cluster(sm.of_peer.ticket_full[at.slot], at.full());
        ticket = sm.of_peer.ticket[at.slot];
        ptx::arrive_at(0, sm.of_peer.ticket_empty[at.slot]);
      }
      at.advance();
      return ticket;
    }
  }
};

// --- send and acknowledge, one thread each

// Goes through the stages of dS: `of_tile` where it is the turn of `whose`, `of_gradient` for dV and dK.
template <Config config, typename OfTile, typename OfGradient>
__device__ __forceinline__ void for_each_ds(const Parameters& p, SharedMemory<config.ctas>& sm, int whose,
                                            OfTile of_tile, OfGradient of_gradient) {
  WorkReader<config.ctas> reader(sm);
  RingPosition<stages_of(config.ctas).ds> ds_at;
  int turn = 0;
  for (;;) {
    const Work& work = reader.next();
    if (work.batch < 0) return;
    if (threadIdx.x % 32 == 0) {
#pragma unroll 1
      for (int tiles = work.all_tiles(); tiles > 0; --tiles, ds_at.advance()) {
        if (turn == whose) of_tile(ds_at);
        turn ^= 1;
      }
      for (int gradients = p.wide_dv.data ? 0 : 2; gradients > 0; --gradients, ds_at.advance())
        of_gradient(ds_at);
    }
  }
}

// dS of the tiles that are the peer's turn, into the peer's shared memory.
template <Config config>
__device__ void send(const Parameters& p, SharedMemory<2>& sm, int rank) {
  RingPosition<kPeerStages> at;
  for_each_ds<config>(
      p, sm, rank ^ 1,
      [&](const auto& ds_at) {
        ptx::wait_for_cluster(sm.of_peer.ds_empty[at.slot], at.empty());
        wait(sm.ds_full[ds_at.slot], ds_at.full());
        FLASHBACK_MARK("send dS");
        ptx::send_bulk(rank ^ 1, sm.peer.ds[at.slot], &sm.ds[ds_at.slot], sm.of_peer.ds_full[at.slot]);
        at.advance();
      },
      // Only so that no phase of the barrier goes by unseen: two later it would look like this one.
      [&](const auto& ds_at) { wait(sm.ds_full[ds_at.slot], ds_at.full()); });
}

// What the peer has sent: once it is here, its stage there may be written again, for all that multiply would
// have arrived there.
template <Config config>
__device__ void acknowledge(const Parameters& p, SharedMemory<2>& sm, int rank) {
  RingPosition<kPeerStages> at;
  for_each_ds<config>(
      p, sm, rank,
      [&](const auto& ds_at) {
        arrive_and_expect(sm.of_peer.ds_full[at.slot], sizeof(sm.peer.ds[0]));
        ptx::wait_for_cluster(sm.of_peer.ds_full[at.slot], at.full());
        ptx::arrive_at(rank ^ 1, sm.ds_empty[ds_at.slot], kMultiplyWarps);
        at.advance();
      },
      [](const auto&) {});
}

}  // namespace flashback::sm90::backward
