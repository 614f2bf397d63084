// SPDX-License-Identifier: Apache-2.0
// A RequestLimiter bounds how many requests are worked on at once, in total and per user, so that
// one user cannot take the server from the others. Belongs to the API server's loop.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "base/metrics.h"
#include "base/result.h"

namespace berth::apiserver {

// Short requests and streams are counted apart: a watch lives for minutes and costs almost nothing.
enum class RequestLength : uint8_t { kShort, kStream };

struct RequestLimits {
  // 1,024 requests * at most 3 MiB of body and answer each = 3 GiB at the very worst; usually
  // 1,024 * 10 KiB.
  size_t short_total = 1024;
  size_t short_per_user = 512;
  // 20,480 watches * 30 KiB = 600 MiB.
  size_t stream_total = 20480;
  // 340 poollets of IronCore under one user * 12 watches = 4,080. Five users have to come together
  // to take all of them.
  size_t stream_per_user = 4096;
};

class RequestLimiter {
 public:
  // Holding a Ticket means being counted.
  class Ticket {
   public:
    Ticket() = default;
    Ticket(Ticket&& other) noexcept
        : limiter_(std::exchange(other.limiter_, nullptr)),
          entry_(other.entry_),
          kind_(other.kind_) {}
    Ticket& operator=(Ticket&& other) noexcept {
      std::swap(limiter_, other.limiter_);
      std::swap(entry_, other.entry_);
      std::swap(kind_, other.kind_);
      return *this;
    }
    ~Ticket();

   private:
    friend class RequestLimiter;
    using Users = std::map<std::string, std::array<size_t, 2>, std::less<>>;
    RequestLimiter* limiter_ = nullptr;
    Users::iterator entry_;
    RequestLength kind_ = RequestLength::kShort;
  };

  RequestLimiter(RequestLimits limits, metrics::Registry& metrics);
  // CHECKs that no ticket is left.
  ~RequestLimiter();
  RequestLimiter(const RequestLimiter&) = delete;
  RequestLimiter& operator=(const RequestLimiter&) = delete;

  // TooManyRequests, to be tried again after a second, if there is no room.
  Result<Ticket> Enter(std::string_view user, RequestLength kind);

  size_t in_flight(RequestLength kind) const { return total_[static_cast<size_t>(kind)]; }

 private:
  RequestLimits limits_;
  std::array<size_t, 2> total_ = {0, 0};
  Ticket::Users users_;  // only users with requests in flight, so no larger than the totals
  metrics::Counter& refused_;
};

}  // namespace berth::apiserver
