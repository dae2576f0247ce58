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
  used_ = 0;
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
  used_ |= units_of(first, columns);
  std::memset(columns_.get() + first, 0xff, columns * sizeof(Column));
}

bool TensorMemory::allocated(std::uint32_t first, std::uint32_t columns) const {
  if (first >= kColumns || columns > kColumns - first) return false;
  const std::uint32_t units = units_of(first, columns);
  return (used_ & units) == units;
}

bool TensorMemory::release(std::uint32_t first, std::uint32_t columns) {
  if (first % kUnit != 0 || !allocated(first, columns)) return false;
  used_ &= ~units_of(first, columns);
  return true;
}

std::uint32_t TensorMemory::columns_in_use() const {
  return kUnit * static_cast<std::uint32_t>(__builtin_popcount(used_));
}

namespace {

void copy(Warp& warp, const Warp::PendingLoad& load) {
  const int first_lane = 32 * (warp.index() % 4);
  for (int j = 0; j < load.step->list_size; ++j) {
    const Slot slot = load.step->list[j];
    if (slot == kNone) continue;
    const std::uint32_t* column =
        *warp.cta().tensor_memory.column(load.column + static_cast<std::uint32_t>(j));
    std::memcpy(warp.lanes<std::uint32_t>(slot), column + first_lane, 32 * sizeof(std::uint32_t));
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
  const int first_lane = 32 * (warp.index() % 4);
  for (const Warp::PendingStore& store : warp.pending_stores) {
    for (std::size_t j = 0; j < store.values.size() / 32; ++j) {
      std::uint32_t* column = *warp.cta().tensor_memory.column(store.column + static_cast<std::uint32_t>(j));
      std::memcpy(column + first_lane, store.values.data() + 32 * j, 32 * sizeof(std::uint32_t));
    }
    end(warp, store.operation);
  }
  warp.pending_stores.clear();
}

}  // namespace flashback::emulator
