// The order in which things happen while a time is taken, on a device that only writes down what it is asked.
#include "bench/protocol.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "bench/median.h"

namespace flashback::bench {
namespace {

// Calls as letters: F flush, ( and ) the events, the contenders by their own. The n-th elapsed time is n ms.
class Scribe final : public Workbench {
 public:
  Arch arch() const override { return Arch::kSm90; }
  int multiprocessors() const override { return 132; }
  Status encode(const TensorMapRequest&, void*) override { return {}; }
  Status launch(const Launch&, Stream) override { return {}; }
  Status fill(Address address, std::uint32_t, std::size_t words, Stream) override {
    EXPECT_EQ(address, 4096u);
    EXPECT_EQ(words, 16u);
    script += "F";
    return {};
  }
  Status allocate(std::size_t, Address* address) override {
    *address = 4096;
    return {};
  }
  void release(Address) override { ++released; }
  Status upload(Address, std::span<const std::byte>, Stream) override { return {}; }
  Status download(std::span<std::byte>, Address, Stream) override { return {}; }
  Status wait(Stream) override { return {}; }
  Status mark(int which, Stream) override {
    script += which == 0 ? "(" : ")";
    return {};
  }
  Status elapsed(double* milliseconds) override {
    *milliseconds = ++times;
    return {};
  }

  std::string script;
  int times = 0, released = 0;
};

class Letter final : public Contender {
 public:
  Letter(Scribe& scribe, std::string letter) : scribe_(scribe), letter_(std::move(letter)) {}
  const std::string& name() const override { return letter_; }
  void begin(const Pass&) override {}
  void enqueue() override { scribe_.script += letter_; }

 private:
  Scribe& scribe_;
  const std::string letter_;
};

std::string script_of(const Protocol& protocol, std::vector<Timing>* timings) {
  Scribe scribe;
  Letter a(scribe, "a"), b(scribe, "b");
  {
    Timer timer(scribe, nullptr, 64);
    *timings = take_times(timer, protocol, {&a, &b}, nullptr);
  }
  EXPECT_EQ(scribe.released, 1);
  return scribe.script;
}

TEST(Protocols, InTurnsTheFirstOneChanges) {
  std::vector<Timing> timings;
  EXPECT_EQ(script_of({"", 2, 0, 1, 0, 2, 0, true}, &timings),
            "ab"
            "F(a)F(b)F(b)F(a)"
            "ba"
            "F(b)F(a)F(a)F(b)");
  ASSERT_EQ(timings.size(), 2u);
  EXPECT_EQ(timings[0].rounds, (std::vector<std::vector<double>>{{1, 4}, {6, 7}}));
  EXPECT_EQ(timings[1].rounds, (std::vector<std::vector<double>>{{2, 3}, {5, 8}}));
  EXPECT_EQ(timings[0].median_ms(), 5);
}

TEST(Protocols, AloneEachHasItsWarmUp) {
  std::vector<Timing> timings;
  EXPECT_EQ(script_of({"", 2, 0, 2, 0, 2, 0, false}, &timings),
            "aaF(a)F(a)"
            "bbF(b)F(b)"
            "bbF(b)F(b)"
            "aaF(a)F(a)");
  EXPECT_EQ(timings[0].all(), (std::vector<double>{1, 2, 7, 8}));
  EXPECT_EQ(timings[1].all(), (std::vector<double>{3, 4, 5, 6}));
}

TEST(Protocols, LastAtLeastAsLongAsTheySay) {
  std::vector<Timing> timings;
  const auto start = std::chrono::steady_clock::now();
  script_of({"", 1, 10, 1, 20, 1, 30, false}, &timings);
  const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
  EXPECT_GE(time.count(), 2 * (10 + 20 + 30));
  EXPECT_GT(timings[0].all().size(), 1u);
}

TEST(Median, OfEvenNumbersIsTheMeanOfTheMiddleTwo) {
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 2, 3}), 2.5);
  EXPECT_EQ(median({}), 0);
}

// Clock reasons add up; of the rest the median.
TEST(GpuLogs, ReadWhileTheyAreOpen) {
  struct Sensors final : GpuSensors {
    int count = 0;
    Status read(GpuReading* reading) override {
      ++count;
      *reading = {100.0 * count, 1000, 3000, 60, count == 1 ? 1u : 4u};
      return {};
    }
    Status driver_version(std::string*) override { return {}; }
    Status power_limit(double*) override { return {}; }
  } sensors;
  GpuLog log(&sensors);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const std::vector<GpuReading> readings = log.stop();
  EXPECT_EQ(readings.size(), std::size_t(sensors.count));
  ASSERT_GE(readings.size(), 2u);
  EXPECT_EQ(summary(readings).watts, 100 * (1 + sensors.count) / 2.0);
  EXPECT_EQ(summary(readings).clock_reasons, 5u);
  EXPECT_TRUE(GpuLog(nullptr).stop().empty());
}

}  // namespace
}  // namespace flashback::bench
