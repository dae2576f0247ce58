#include "emulator/machine/units/tensor_memory.h"

#include <cstdlib>
#include <cstring>
#include <new>

#include "emulator/machine/cta.h"
#include "emulator/machine/observer.h"

namespace flashback::emulator {
namespace {

constexpr std::align_val_t kAlignment{64};

}  // namespace

void TensorMemory::Free::operator()(Column* columns) const {
  operator delete[](columns, kAlignment);
}

void TensorMemory::reset() {
  used_ = reachable_ = 0;
  relinquished = false;
  group = 0;
  pair_request = {};
}

// Bits of used_ that hold the columns.
std::uint32_t TensorMemory::units_of(std::uint32_t first, std::uint32_t columns) {
  const std::uint32_t begin = first / kUnit, end = (first + columns + kUnit - 1) / kUnit;
  return static_cast<std::uint32_t>((std::uint64_t{1} << end) - (std::uint64_t{1} << begin));
}

std::uint32_t TensorMemory::allocate(std::uint32_t columns) {
  for (std::uint32_t first = 0; first + columns <= kColumns; first += columns) {
    if ((used_ & units_of(first, columns)) != 0) continue;
    take(first, columns);
    return first;
  }
  return kColumns;
}

std::uint32_t TensorMemory::allocate_in_both(TensorMemory& one, TensorMemory& other, std::uint32_t columns) {
  for (std::uint32_t first = 0; first + columns <= kColumns; first += columns) {
    if (((one.used_ | other.used_) & units_of(first, columns)) != 0) continue;
    one.take(first, columns);
    other.take(first, columns);
    return first;
  }
  return kColumns;
}

void TensorMemory::take(std::uint32_t first, std::uint32_t columns) {
  if (columns_ == nullptr)
    columns_.reset(static_cast<Column*>(operator new[](kColumns * sizeof(Column), kAlignment)));
  const std::uint32_t units = units_of(first, columns);
  used_ |= units;
  reachable_ |= units;
  std::memset(columns_.get() + first, 0xff, columns * sizeof(Column));
}

bool TensorMemory::all(std::uint32_t units, std::uint32_t first, std::uint32_t columns) {
  if (first >= kColumns || columns > kColumns - first) return false;
  return (~units & units_of(first, columns)) == 0;
}

bool TensorMemory::release(std::uint32_t first, std::uint32_t columns) {
  if (first % kUnit != 0 || !all(used_, first, columns)) return false;
  used_ &= ~units_of(first, columns);
  return true;
}

std::uint32_t TensorMemory::columns_in_use() const {
  return kUnit * static_cast<std::uint32_t>(__builtin_popcount(used_));
}

std::uint32_t TensorAccess::columns(std::uint32_t registers) const {
  const bool is_wide = shape != TensorShape::k32x32b && shape != TensorShape::k16x32bx2;
  return registers * (is_wide ? 2 : 1) * (packs ? 2 : 1);
}

namespace {

struct Cell {
  std::uint32_t lane, column;  // column: of 32 bits of register, two columns of the memory when packing
};

// The cell of register `j` of thread `t`, from the first one on. The threads of a shape 16xNb lie as those of
// a matrix fragment do: four or fewer along a row, eight rows, and the next register eight rows below.
Cell cell(const TensorAccess& access, std::uint32_t t, std::uint32_t j) {
  switch (access.shape) {
    case TensorShape::k32x32b:
      break;
    case TensorShape::k16x32bx2:
      return {t % 16, j};
    case TensorShape::k16x64b:
      return {t / 4 + 8 * (t % 2), 2 * j + t / 2 % 2};
    case TensorShape::k16x128b:
      return {t / 4 + 8 * (j % 2), 4 * (j / 2) + t % 4};
    case TensorShape::k16x256b:
      return {t / 4 + 8 * (j / 2 % 2), 8 * (j / 4) + 2 * (t % 4) + j % 2};
  }
  return {t, j};
}

template <class Visit>
void each_cell(const TensorAccess& access, std::uint32_t j, TensorMemory::Column* memory, Visit&& visit) {
  for (std::uint32_t t = 0; t < 32; ++t) {
    const Cell at = cell(access, t, j);
    const std::uint32_t lane = access.lane + at.lane, second = t < 16 ? 0 : access.half;
    const std::uint32_t column = access.column + second + at.column * (access.packs ? 2 : 1);
    visit(t, memory[column][lane], memory[column + (access.packs ? 1 : 0)][lane]);
  }
}

}  // namespace

void TensorMemory::load(const TensorAccess& access, std::uint32_t j, std::uint32_t* values) {
  if (access.shape == TensorShape::k32x32b && !access.packs) {
    std::memcpy(values, *column(access.column + j) + access.lane, 32 * sizeof *values);
    return;
  }
  each_cell(access, j, columns_.get(), [&](std::uint32_t t, std::uint32_t& low, std::uint32_t& high) {
    values[t] = access.packs ? (low & 0xffff) | high << 16 : low;
  });
}

void TensorMemory::store(const TensorAccess& access, std::uint32_t j, const std::uint32_t* values) {
  if (access.shape == TensorShape::k32x32b && !access.packs) {
    std::memcpy(*column(access.column + j) + access.lane, values, 32 * sizeof *values);
    return;
  }
  each_cell(access, j, columns_.get(), [&](std::uint32_t t, std::uint32_t& low, std::uint32_t& high) {
    high = values[t] >> 16;
    low = access.packs ? values[t] & 0xffff : values[t];
  });
}

namespace {

void copy(Warp& warp, const Warp::PendingLoad& load) {
  for (std::uint32_t j = 0; j < load.step->list_size; ++j) {
    const Slot slot = load.step->list[j];
    if (slot != kNone) warp.cta().tensor_memory.load(load.from, j, warp.lanes<std::uint32_t>(slot));
  }
}

void end(const Warp& warp, std::uint64_t operation) {
  if (Observer* observer = warp.cta().observer()) [[unlikely]]
    observer->ended(operation);
}

void complete(Warp& warp, const Warp::PendingLoad& load) {
  if (!load.is_copied) copy(warp, load);
  end(warp, load.operation);
}

bool uses(const Step& step, const Step& load) {
  for (int j = 0; j < load.list_size; ++j) {
    const Slot slot = load.list[j];
    if (slot == kNone) continue;
    // A 64-bit register may lie over two of them only if the decoder laid it there, which it does not.
    if (slot == step.a || slot == step.b || slot == step.c || slot == step.d) return true;
    for (int k = 0; k < step.list_size; ++k) {
      if (step.list[k] == slot) return true;
    }
  }
  return false;
}

}  // namespace

void complete_loads_used_by(Warp& warp, const Step& step) {
  std::erase_if(warp.pending_loads, [&](const Warp::PendingLoad& load) {
    if (!uses(step, *load.step)) return false;
    complete(warp, load);
    return true;
  });
}

void copy_newest_load(Warp& warp) {
  copy(warp, warp.pending_loads.back());
  if (warp.cta().observer() == nullptr) [[likely]] {
    warp.pending_loads.pop_back();
  } else {
    warp.pending_loads.back().is_copied = true;
  }
}

void complete_all_loads(Warp& warp) {
  for (const Warp::PendingLoad& load : warp.pending_loads) complete(warp, load);
  warp.pending_loads.clear();
}

void complete_all_stores(Warp& warp) {
  for (const Warp::PendingStore& store : warp.pending_stores) {
    for (std::uint32_t j = 0; j < store.values.size() / 32; ++j) {
      warp.cta().tensor_memory.store(store.to, j, store.values.data() + 32 * j);
    }
    end(warp, store.operation);
  }
  warp.pending_stores.clear();
}

}  // namespace flashback::emulator
