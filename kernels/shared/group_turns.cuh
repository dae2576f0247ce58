// Warpgroups that take turns.
#pragma once

#include "kernels/ptx/sync.cuh"

namespace flashback::shared {

// Compute warpgroups begin their products one after another, so that the softmax of one runs under the
// products of the others. Left alone they drift together, all in the softmax while the tensor cores idle.
// Each has a hardware barrier, from `first_barrier` on, at which it waits for its turn.
template <int groups, int first_barrier>
struct GroupTurns {
  int group;

  __device__ explicit GroupTurns(int compute_group) : group(compute_group) {
    if (group == groups - 1) pass();  // the first turn is group 0's
  }
  __device__ void take() const { ptx::sync<kThreads>(first_barrier + group); }
  __device__ void pass() const {
    ptx::arrive<kThreads>(first_barrier + (group == groups - 1 ? 0 : group + 1));
  }
  // The last turn that the last group passed is taken too: no barrier is left half full.
  __device__ void end() const {
    if (group == 0) take();
  }

 private:
  static constexpr int kThreads = 2 * 128;  // the group before and this one
};

}  // namespace flashback::shared
