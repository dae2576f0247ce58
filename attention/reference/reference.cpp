#include "attention/reference/reference.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <memory>
#include <mutex>
#include <thread>

#include "attention/reference/gemm.h"
#include "attention/reference/rounding.h"
#include "attention/reference/rows.h"

namespace flashback::reference {
namespace {

using Index = std::ptrdiff_t;

constexpr Index kBlock = 64;  // query rows that are worked on together

// The row blocks of a head are dealt to this many parts, each with sums of dK and dV of its own, which are
// added in the order of the parts. A fixed number, so that the answer does not depend on the threads.
constexpr Index kParts = 4;

Index round_up(Index value, Index unit) {
  return (value + unit - 1) / unit * unit;
}

constexpr double kNever = -std::numeric_limits<double>::infinity();

// Keys that query row `i` of `rows` sees of `keys`. The last row stands at the last key.
Visible visible_keys(const Mask& mask, Index i, Index rows, Index keys) {
  const Index at = i + keys - rows;
  const Index first = mask.left == kUnlimited ? 0 : std::max(Index{0}, at - mask.left);
  const Index end = mask.right == kUnlimited ? keys : std::min(keys, at + mask.right + 1);
  return {first, std::max(first, end)};
}

double store(double value, Exact) {
  return value;
}
float store(float value, Stored stored) {
  return round_to(stored.dtype, value);
}

// The keys and values of one (batch, key head), padded with zeros to whole panels, and what its parts add up
// to.
template <typename Real>
struct KeyHead {
  std::once_flag prepared;
  std::vector<Real> k, v;                        // [keys][channels]
  std::vector<Real> k_transposed, v_transposed;  // panels of kPanel keys: [panel][channels][kPanel]
  std::vector<std::vector<Real>> dk, dv;         // of each task, [keys][channels]; empty until it is done
  std::atomic<Index> tasks_left;
};

// A sequence: its rows among all rows of a side, and its keys in whole panels.
struct Sequence {
  Rows q, k;
  Index keys;
};

template <typename Real, typename Arithmetic>
class Solver {
 public:
  // The backward pass takes `given_out`, or where there is none its own.
  Solver(const Question& question, const Inputs& inputs, const std::vector<float>* given_out,
         Arithmetic arithmetic)
      : question_(question),
        shape_(question.shape),
        inputs_(inputs),
        given_out_(given_out),
        arithmetic_(arithmetic),
        channels_(round_up(shape_.head_dim, kPanel<Real>)),
        group_(shape_.kv_heads > 0 ? shape_.heads / shape_.kv_heads : 0),
        key_heads_(shape_.batch * shape_.kv_heads) {
    for (Index b = 0; b < shape_.batch; ++b) {
      const Rows q =
          question.q_rows.empty() ? Rows{b * shape_.seqlen_q, shape_.seqlen_q} : question.q_rows[b];
      const Rows k =
          question.k_rows.empty() ? Rows{b * shape_.seqlen_k, shape_.seqlen_k} : question.k_rows[b];
      sequences_.push_back({q, k, round_up(k.count, kPanel<Real>)});
      most_keys_ = std::max(most_keys_, sequences_.back().keys);
    }
    // One panel more than needed, so that a column of scores does not fall into one set of the cache.
    score_row_ = most_keys_ + kPanel<Real>;
    const std::size_t q_rows = (question.q_packed ? 1 : shape_.batch) * shape_.seqlen_q,
                      k_rows = (question.k_packed ? 1 : shape_.batch) * shape_.seqlen_k;
    const std::size_t q_size = q_rows * shape_.heads * shape_.head_dim;
    const std::size_t k_size = k_rows * shape_.kv_heads * shape_.head_dim;
    answer_.out.resize(q_size);
    answer_.dq.resize(q_size);
    answer_.dk.resize(k_size);
    answer_.dv.resize(k_size);
    answer_.lse.resize(q_rows * shape_.heads);
    if (!inputs.sink.empty()) dsink_of_rows_.resize(answer_.lse.size());
    for (KeyHead<Real>& head : key_heads_) {
      head.dk.resize(group_ * kParts);
      head.dv.resize(group_ * kParts);
      head.tasks_left = group_ * kParts;
    }
  }

  Answer<Real> solve(int threads) {
    if (threads <= 0) threads = std::max(1u, std::thread::hardware_concurrency());
    const Index tasks = static_cast<Index>(key_heads_.size()) * group_ * kParts;
    std::atomic<Index> next = 0;
    auto work = [&] {
      Scratch scratch(*this);
      for (Index task = next++; task < tasks; task = next++) run(task, scratch);
    };
    std::vector<std::jthread> others;
    for (Index i = 1; i < std::min<Index>(threads, tasks); ++i) others.emplace_back(work);
    if (tasks > 0) work();
    others.clear();
    if (!inputs_.sink.empty()) sum_sink_gradient();
    return std::move(answer_);
  }

 private:
  struct Scratch {  // of a thread: one row block
    explicit Scratch(const Solver& s)
        : q(kBlock * s.channels_),
          dout(q.size()),
          out(q.size()),
          dq(q.size()),
          p(kBlock * s.score_row_),
          ds(p.size()) {}
    std::vector<Real> q, dout, out, dq;  // [row][channels]
    std::vector<Real> p, ds;             // [row][score_row]
  };

  // First element of the `row`-th of all rows, of a head.
  Index element(Index row, Index head, Index heads) const { return (row * heads + head) * shape_.head_dim; }

  // Where the lse of the first row of a sequence stands.
  Index first_lse(Index batch, Index head) const {
    if (question_.q_packed) return head * shape_.seqlen_q + sequences_[batch].q.first;
    const Index within = sequences_[batch].q.first - batch * shape_.seqlen_q;
    return (batch * shape_.heads + head) * shape_.seqlen_q + within;
  }

  void run(Index task, Scratch& scratch) {
    const Index part = task % kParts, member = task / kParts % group_, key_head = task / kParts / group_;
    const Index batch = key_head / shape_.kv_heads, kv = key_head % shape_.kv_heads;
    KeyHead<Real>& head = key_heads_[key_head];
    std::call_once(head.prepared, [&] { prepare(head, batch, kv); });

    const Sequence& sequence = sequences_[batch];
    std::vector<Real> dk(sequence.keys * channels_), dv(sequence.keys * channels_);
    for (Index row = part * kBlock; row < sequence.q.count; row += kParts * kBlock) {
      solve_block(head, batch, kv * group_ + member, row, scratch, dk.data(), dv.data());
    }
    head.dk[task % (kParts * group_)] = std::move(dk);
    head.dv[task % (kParts * group_)] = std::move(dv);
    if (--head.tasks_left == 0) finish(head, batch, kv);
  }

  void prepare(KeyHead<Real>& head, Index batch, Index kv) {
    const Sequence& sequence = sequences_[batch];
    auto load = [&](const std::vector<float>& from, std::vector<Real>& rows, std::vector<Real>& panels) {
      rows.assign(sequence.keys * channels_, 0);
      panels.assign(sequence.keys * channels_, 0);
      for (Index j = 0; j < sequence.k.count; ++j) {
        const float* source = from.data() + element(sequence.k.first + j, kv, shape_.kv_heads);
        const Index panel = j / kPanel<Real> * kPanel<Real> * channels_ + j % kPanel<Real>;
        for (Index c = 0; c < shape_.head_dim; ++c) {
          rows[j * channels_ + c] = source[c];
          panels[panel + c * kPanel<Real>] = source[c];
        }
      }
    };
    load(inputs_.k, head.k, head.k_transposed);
    load(inputs_.v, head.v, head.v_transposed);
  }

  void solve_block(const KeyHead<Real>& head, Index batch, Index query_head, Index first_row, Scratch& s,
                   Real* dk, Real* dv) {
    const Sequence& sequence = sequences_[batch];
    const Index rows = std::min(kBlock, sequence.q.count - first_row);
    const Index first = element(sequence.q.first + first_row, query_head, shape_.heads);
    const auto visible_to = [&](Index row) {
      return visible_keys(question_.mask, row, sequence.q.count, sequence.k.count);
    };
    const Index stride = shape_.heads * shape_.head_dim;
    auto load = [&](const std::vector<float>& from, std::vector<Real>& to) {
      std::fill(to.begin(), to.end(), Real{0});
      for (Index i = 0; i < rows; ++i) {
        std::copy_n(from.data() + first + i * stride, shape_.head_dim, to.data() + i * channels_);
      }
    };
    auto save = [&](const std::vector<Real>& from, std::vector<Real>& to) {
      for (Index i = 0; i < rows; ++i) {
        for (Index c = 0; c < shape_.head_dim; ++c) {
          to[first + i * stride + c] = store(from[i * channels_ + c], arithmetic_);
        }
      }
    };
    load(inputs_.q, s.q);
    load(inputs_.dout, s.dout);
    std::fill(s.out.begin(), s.out.end(), Real{0});
    std::fill(s.dq.begin(), s.dq.end(), Real{0});

    // Up to the last column that any row of the block sees, in whole panels.
    const Index columns = round_up(visible_to(first_row + rows - 1).end, kPanel<Real>);
    auto scores_of = [&](const std::vector<Real>& left, const std::vector<Real>& panels,
                         std::vector<Real>& to) {
      for (Index i = 0; i < kBlock; ++i) std::fill_n(to.data() + i * score_row_, columns, Real{0});
      accumulate(Product<Real>{.c = to.data(),
                               .c_row = score_row_,
                               .left = {left.data(), channels_, 1},
                               .right = {panels.data(), kPanel<Real>, kPanel<Real> * channels_},
                               .rows = kBlock,
                               .columns = columns,
                               .depth = channels_});
    };
    auto row_sums = [&](const std::vector<Real>& left, const std::vector<Real>& right,
                        std::vector<Real>& to) {
      accumulate(Product<Real>{.c = to.data(),
                               .c_row = channels_,
                               .left = {left.data(), score_row_, 1},
                               .right = {right.data(), channels_, kPanel<Real>},
                               .rows = kBlock,
                               .columns = channels_,
                               .depth = columns});
    };
    auto column_sums = [&](const std::vector<Real>& left, const std::vector<Real>& right, Real* to) {
      accumulate(Product<Real>{.c = to,
                               .c_row = channels_,
                               .left = {left.data(), 1, score_row_},
                               .right = {right.data(), channels_, kPanel<Real>},
                               .rows = columns,
                               .columns = channels_,
                               .depth = kBlock});
    };

    scores_of(s.q, head.k_transposed, s.p);
    const Index first_lse = this->first_lse(batch, query_head) + first_row;
    const double sink = inputs_.sink.empty() ? kNever : inputs_.sink[query_head];
    for (Index i = 0; i < kBlock; ++i) {
      const Visible visible = i < rows ? visible_to(first_row + i) : Visible{0, 0};
      const double log_sum =
          softmax(s.p.data() + i * score_row_, visible, columns, question_.scale, sink, arithmetic_);
      if (i < rows) answer_.lse[first_lse + i] = static_cast<Real>(log_sum);
    }
    row_sums(s.p, head.v, s.out);
    save(s.out, answer_.out);

    column_sums(s.p, s.dout, dv);
    scores_of(s.dout, head.v_transposed, s.ds);
    if (given_out_) load(*given_out_, s.out);
    for (Index i = 0; i < kBlock; ++i) {
      Real delta = 0;
      for (Index c = 0; c < channels_; ++c) delta += s.dout[i * channels_ + c] * s.out[i * channels_ + c];
      if (i < rows && !inputs_.dlse.empty()) delta -= inputs_.dlse[first_lse + i];
      if (i < rows && !inputs_.sink.empty()) {
        const auto weight = static_cast<Real>(std::exp(sink - double{answer_.lse[first_lse + i]}));
        dsink_of_rows_[first_lse + i] = -store(weight, arithmetic_) * delta;
      }
      softmax_gradient(s.p.data() + i * score_row_, s.ds.data() + i * score_row_, columns, delta,
                       question_.scale, arithmetic_);
    }
    column_sums(s.ds, s.q, dk);
    row_sums(s.ds, head.k, s.dq);
    save(s.dq, answer_.dq);
  }

  void finish(KeyHead<Real>& head, Index batch, Index kv) {
    const Sequence& sequence = sequences_[batch];
    auto add = [&](std::vector<std::vector<Real>>& parts, std::vector<Real>& to) {
      for (Index j = 0; j < sequence.k.count; ++j) {
        Real* row = to.data() + element(sequence.k.first + j, kv, shape_.kv_heads);
        for (Index c = 0; c < shape_.head_dim; ++c) {
          Real sum = 0;
          for (const std::vector<Real>& part : parts) sum += part[j * channels_ + c];
          row[c] = store(sum, arithmetic_);
        }
      }
      parts.clear();
    };
    add(head.dk, answer_.dk);
    add(head.dv, answer_.dv);
    for (std::vector<Real>* copy : {&head.k, &head.v, &head.k_transposed, &head.v_transposed}) *copy = {};
  }

  // In the order of the rows, whoever worked them out.
  void sum_sink_gradient() {
    answer_.dsink.assign(shape_.heads, 0);
    for (Index batch = 0; batch < shape_.batch; ++batch) {
      for (Index head = 0; head < shape_.heads; ++head) {
        const Real* rows = dsink_of_rows_.data() + first_lse(batch, head);
        for (Index i = 0; i < sequences_[batch].q.count; ++i) answer_.dsink[head] += rows[i];
      }
    }
  }

  const Question& question_;
  const Shape& shape_;
  const Inputs& inputs_;
  const std::vector<float>* given_out_;
  const Arithmetic arithmetic_;
  const Index channels_, group_;
  Index most_keys_ = 0, score_row_ = 0;
  std::vector<Sequence> sequences_;
  std::vector<KeyHead<Real>> key_heads_;
  std::vector<Real> dsink_of_rows_;  // in the order of lse
  Answer<Real> answer_;
};

}  // namespace

Answer<double> exact(const Question& question, const Inputs& inputs, int threads) {
  return Solver<double, Exact>(question, inputs, nullptr, Exact{}).solve(threads);
}

std::vector<float> stored(const std::vector<double>& out, Dtype dtype) {
  std::vector<float> values(out.begin(), out.end());
  for (float& value : values) value = round_to(dtype, value);
  return values;
}

Answer<float> sixteen_bit(const Question& question, const Inputs& inputs, const std::vector<float>& out,
                          Dtype dtype, int threads) {
  return Solver<float, Stored>(question, inputs, &out, Stored{dtype}).solve(threads);
}

}  // namespace flashback::reference
