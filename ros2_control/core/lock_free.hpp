// What passes between a thread that may wait and a loop that must not: one writer, one reader, no lock.

#pragma once

#include <array>
#include <atomic>
#include <cstddef>

namespace hodyn_ros
{
// The newest of what one thread writes, for another. Three places: one to write, one to read, one in between.
template <class T>
class Latest
{
public:
  explicit Latest(const T & blank) : places_{blank, blank, blank} {}

  // Where the writer may write; `publish` hands it over.
  T & next() { return places_[write_]; }
  void publish() { write_ = between_.exchange(write_ | kNew, std::memory_order_acq_rel) & kPlace; }

  // Take the newest for `current`; false where there is none since the last time.
  bool take()
  {
    if ((between_.load(std::memory_order_relaxed) & kNew) == 0) {
      return false;
    }
    read_ = between_.exchange(read_, std::memory_order_acq_rel) & kPlace;
    return true;
  }
  const T & current() const { return places_[read_]; }

private:
  static constexpr unsigned kPlace = 3, kNew = 4;
  std::array<T, 3> places_;
  unsigned write_ = 0, read_ = 1;
  std::atomic<unsigned> between_{2};
};

// What happened, in order; what does not fit is lost and counted.
template <class T, std::size_t kSize>
class Events
{
public:
  void push(const T & event)
  {
    const std::size_t end = end_.load(std::memory_order_relaxed);
    if (end - begin_.load(std::memory_order_acquire) == kSize) {
      lost.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    events_[end % kSize] = event;
    end_.store(end + 1, std::memory_order_release);
  }

  bool pop(T & event)
  {
    const std::size_t begin = begin_.load(std::memory_order_relaxed);
    if (begin == end_.load(std::memory_order_acquire)) {
      return false;
    }
    event = events_[begin % kSize];
    begin_.store(begin + 1, std::memory_order_release);
    return true;
  }

  std::atomic<long> lost{0};

private:
  std::array<T, kSize> events_{};
  std::atomic<std::size_t> begin_{0}, end_{0};
};
}  // namespace hodyn_ros
