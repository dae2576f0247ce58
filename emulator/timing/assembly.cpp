// The assembler moves instructions, within a stretch of straight code, so that a warp seldom waits for its
// own results: loads go up, what needs them goes down. PTX has the order of the source, and a warp issues in
// order; played as it stands a loop would wait where the real one does not. So each stretch is scheduled here
// as list schedulers do it: whoever can start first does, and among equals the one with the longest way to
// the end of the stretch.
#include "emulator/timing/assembly.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <unordered_map>

namespace flashback::emulator::timing {
namespace {

// Cycles after which a result may be used and for which the pipe is taken, as the assembler sees them: fixed
// latencies of a warp that is alone. The replay has its own.
struct View {
  double latency, interval;
};
View view_of(const Kernel::Step& step) {
  switch (step.action) {
    case Action::kSharedLoad:
      return {30, 2};
    case Action::kGlobalLoad:
      return {200, 2};
    case Action::kTensorLoad:
      return {100, 2};
    default:
      break;
  }
  switch (step.pipe) {
    case Pipe::kSpecial:
      return {20, 4};
    case Pipe::kFma2:
    case Pipe::kAlu:
    case Pipe::kConvert:
    case Pipe::kInteger:
      return {5, 2};
    case Pipe::kTransferred:
      return {24, 2};
    default:
      return {step.instructions == 0 ? 0.0 : 4.0, step.instructions == 0 ? 0.0 : 1.0};
  }
}

enum class Order { kFree, kLoad, kStore, kTensor };
Order order_of(Action action) {
  switch (action) {
    case Action::kSharedLoad:
    case Action::kGlobalLoad:
      return Order::kLoad;
    case Action::kSharedStore:
    case Action::kGlobalStore:
      return Order::kStore;
    case Action::kTensorLoad:
    case Action::kTensorStore:
      return Order::kTensor;
    default:
      return Order::kFree;
  }
}

// The steps [begin, end) of one stretch in the assembler's order.
class Stretch {
 public:
  Stretch(const Program& program, const Kernel& kernel, std::uint32_t begin, std::uint32_t end)
      : begin_(begin), nodes_(end - begin) {
    std::unordered_map<Register, std::uint32_t> writer;
    std::unordered_map<Register, std::vector<std::uint32_t>> readers;
    std::vector<std::uint32_t> loads, stores, tensor;
    for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
      nodes_[i].view = view_of(kernel.steps[begin + i]);
      nodes_[i].pipe = kernel.steps[begin + i].pipe;
      for (std::uint32_t a = program.access_begin[begin + i]; a < program.access_begin[begin + i + 1]; ++a) {
        const Program::Access& access = program.accesses[a];
        const auto written = writer.find(access.register_number);
        if (written != writer.end()) depend(written->second, i, access.read);
        if (access.written) {
          for (std::uint32_t reader : readers[access.register_number]) depend(reader, i, false);
        }
      }
      for (std::uint32_t a = program.access_begin[begin + i]; a < program.access_begin[begin + i + 1]; ++a) {
        const Program::Access& access = program.accesses[a];
        if (access.written) {
          writer[access.register_number] = i;
          readers[access.register_number].clear();
        } else {
          readers[access.register_number].push_back(i);
        }
      }
      switch (order_of(kernel.steps[begin + i].action)) {
        case Order::kLoad:
          for (std::uint32_t store : stores) depend(store, i, false);
          loads.push_back(i);
          break;
        case Order::kStore:
          for (std::uint32_t load : loads) depend(load, i, false);
          for (std::uint32_t store : stores) depend(store, i, false);
          loads.clear();
          stores = {i};
          break;
        case Order::kTensor:
          for (std::uint32_t other : tensor) depend(other, i, false);
          tensor = {i};
          break;
        case Order::kFree:
          break;
      }
    }
    for (std::uint32_t i = static_cast<std::uint32_t>(nodes_.size()); i-- > 0;) {
      Node& node = nodes_[i];
      node.way = std::max(node.way, node.view.latency);
      for (const Edge& edge : node.before) {
        Node& earlier = nodes_[edge.node];
        earlier.way = std::max(earlier.way, node.way + (edge.carries_value ? earlier.view.latency : 0));
      }
    }
  }

  // Sets Kernel::Step::rank.
  void schedule(Kernel* kernel) {
    double issue = 0, pipes[kPipes] = {};
    for (std::uint32_t rank = 0; rank < nodes_.size(); ++rank) {
      std::uint32_t best = 0;
      double best_start = 0;
      bool found = false;
      for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
        const Node& node = nodes_[i];
        if (node.placed || node.open != 0) continue;
        const double start = std::max({issue, node.ready, pipes[static_cast<int>(node.pipe)]});
        if (!found || start < best_start || (start == best_start && node.way > nodes_[best].way)) {
          found = true;
          best = i;
          best_start = start;
        }
      }
      Node& node = nodes_[best];
      node.placed = true;
      issue = best_start + (node.view.interval == 0 ? 0 : 1);
      if (node.pipe != Pipe::kNone) pipes[static_cast<int>(node.pipe)] = best_start + node.view.interval;
      for (const Edge& edge : node.after) {
        Node& later = nodes_[edge.node];
        --later.open;
        later.ready = std::max(later.ready, best_start + (edge.carries_value ? node.view.latency : 0));
      }
      kernel->steps[begin_ + best].rank = rank;
    }
  }

 private:
  struct Edge {
    std::uint32_t node;
    bool carries_value;
  };
  struct Node {
    View view{};
    Pipe pipe = Pipe::kNone;
    double way = 0, ready = 0;  // to the end of the stretch; when all it needs is there
    std::uint32_t open = 0;     // edges from nodes that are not placed
    bool placed = false;
    std::vector<Edge> before, after;
  };
  void depend(std::uint32_t earlier, std::uint32_t later, bool carries_value) {
    if (earlier == later) return;
    nodes_[earlier].after.push_back({later, carries_value});
    nodes_[later].before.push_back({earlier, carries_value});
    ++nodes_[later].open;
  }

  std::uint32_t begin_;
  std::vector<Node> nodes_;
};

// What the assembler does away with beyond the forms that vanish by themselves: arithmetic on constants only,
// and sums of a register and a constant that serve as addresses alone, which become displacements.
void fold_constants(const Program& program, Kernel* kernel) {
  const std::size_t steps = program.code.size();
  const auto accesses = [&](std::size_t step, auto&& f) {
    for (std::uint32_t a = program.access_begin[step]; a < program.access_begin[step + 1]; ++a) {
      f(program.accesses[a]);
    }
  };
  std::unordered_map<Register, int> other_uses;  // than as an address
  const auto reads = [&](std::size_t step) {
    int count = 0;
    accesses(step, [&](const Program::Access& access) { count += access.read; });
    return count;
  };
  const auto takes_displacement = [&](std::size_t step, Slot slot) {
    switch (kernel->steps[step].action) {
      case Action::kSharedLoad:
      case Action::kSharedStore:
      case Action::kGlobalLoad:
      case Action::kGlobalStore:
      case Action::kPhaseInit:
      case Action::kPhaseArrive:
      case Action::kPhaseExpect:
      case Action::kPhaseWait:
      case Action::kTensorLoad:
      case Action::kTensorStore:
        return slot == program.code[step].a;
      default:
        return false;
    }
  };
  for (std::size_t i = 0; i < steps; ++i) {
    const bool arithmetic = kernel->steps[i].action == Action::kArithmetic;
    if (arithmetic && reads(i) == 0 && program.code[i].guard == kNone) kernel->steps[i].instructions = 0;
    accesses(i, [&](const Program::Access& access) {
      other_uses[access.register_number] += access.read && !takes_displacement(i, access.slot);
    });
  }
  // Backwards, so that a sum of sums goes as a whole.
  for (std::size_t i = steps; i-- > 0;) {
    const bool sum = kernel->opcodes[i].starts_with("add.s") || kernel->opcodes[i].starts_with("add.u");
    if (!sum || reads(i) != 1 || program.code[i].guard != kNone) continue;
    bool only_addresses = true;
    accesses(i, [&](const Program::Access& access) {
      if (access.written) only_addresses &= other_uses[access.register_number] == 0;
    });
    if (!only_addresses) continue;
    kernel->steps[i].instructions = 0;
    accesses(i, [&](const Program::Access& access) {
      if (access.read) --other_uses[access.register_number];
    });
  }
}

}  // namespace

std::shared_ptr<const Kernel> assemble(const Program& program) {
  auto kernel = std::make_shared<Kernel>();
  kernel->name = program.name;
  kernel->sections = {""};
  kernel->section_of.assign(program.code.size(), Kernel::kSame);
  for (const Program::Mark& mark : program.marks) {
    if (mark.step >= program.code.size()) continue;
    const auto known = std::find(kernel->sections.begin(), kernel->sections.end(), mark.name);
    kernel->section_of[mark.step] = static_cast<std::uint16_t>(known - kernel->sections.begin());
    if (known == kernel->sections.end()) kernel->sections.push_back(mark.name);
  }

  std::vector<bool> is_target(program.code.size() + 1, false);
  for (const Step& step : program.code) {
    const std::string& opcode = program.forms[step.form];
    const Form* form = form_of(opcode);
    if (!form) {
      throw std::invalid_argument(
          fmt::format("PTX line {}: `{}` has no cost in the timing model", step.line, opcode));
    }
    kernel->steps.push_back({form->action, form->pipe, static_cast<float>(form->instructions), 0, 0});
    kernel->opcodes.push_back(opcode);
    kernel->lines.push_back(step.line);
    if (opcode.starts_with("bra")) is_target[step.target] = true;
  }

  fold_constants(program, kernel.get());

  std::uint32_t stretch = 0, begin = 0;
  const auto close = [&](std::uint32_t end) {
    if (end == begin) return;
    for (std::uint32_t i = begin; i < end; ++i) kernel->steps[i].stretch = stretch;
    Stretch(program, *kernel, begin, end).schedule(kernel.get());
    ++stretch;
    begin = end;
  };
  for (std::uint32_t i = 0; i < program.code.size(); ++i) {
    if (is_target[i]) close(i);
    if (!keeps_its_place(kernel->steps[i].action)) continue;
    close(i);
    close(i + 1);
  }
  close(static_cast<std::uint32_t>(program.code.size()));
  return kernel;
}

}  // namespace flashback::emulator::timing
