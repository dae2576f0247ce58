#include "program/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

namespace flashback::program {
namespace {
constexpr std::size_t kWidth = 24;
constexpr std::chrono::milliseconds kInterval{200};
}  // namespace

Progress::Progress(std::size_t steps) : steps_(steps), start_(std::chrono::steady_clock::now()) {
  if (isatty(STDERR_FILENO)) drawer_ = std::thread([this] { keep_drawing(); });
}

void Progress::step(std::string name) {
  const std::lock_guard lock(mutex_);
  name_ = std::move(name);
  ++begun_;
  if (drawer_.joinable()) draw();
}

void Progress::finish() {
  if (!drawer_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    finished_ = true;
  }
  finished_signal_.notify_one();
  drawer_.join();
  fmt::print(stderr, "\r\x1b[K");
}

void Progress::keep_drawing() {
  std::unique_lock lock(mutex_);
  while (!finished_signal_.wait_for(lock, kInterval, [this] { return finished_; })) draw();
}

void Progress::draw() {
  if (begun_ == 0) return;
  const std::size_t done = std::min(begun_ - 1, steps_);
  const std::string bar(kWidth * done / steps_, '=');
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start_;
  fmt::print(stderr, "\r\x1b[K[{:<{}}] {}/{}  {}  {:.1f} s", bar, kWidth, begun_, steps_, name_,
             elapsed.count());
  std::fflush(stderr);
}

}  // namespace flashback::program
