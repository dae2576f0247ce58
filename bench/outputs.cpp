#include "bench/outputs.h"

namespace flashback::bench {

std::vector<Output> outputs(const Pass& pass) {
  const Shape& s = pass.cell.shape;
  const Tensors& t = pass.tensors;
  if (pass.cell.direction == Direction::kForward) return {{"out", t.out, s.seqlen_q, s.heads}};
  return {{"dq", t.dq, s.seqlen_q, s.heads},
          {"dk", t.dk, s.seqlen_k, s.kv_heads},
          {"dv", t.dv, s.seqlen_k, s.kv_heads}};
}

}  // namespace flashback::bench
