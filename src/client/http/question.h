// SPDX-License-Identifier: Apache-2.0
// What the parts of HttpsClient share: one request, and many of them at once.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/http/https_client.h"
#include "net/url.h"
#include "rt/join_all.h"
#include "rt/task.h"

namespace berth::client {

// Requests of one batch in flight: enough to fill the server's commits, few enough for its limits.
inline constexpr size_t kBatchInFlight = 16;
inline constexpr std::string_view kJson = "application/json";

struct HttpsClient::Question {
  std::string method = "GET";
  std::string path;
  net::Query query;
  std::string_view accept = kJson;
  std::string_view content_type = kJson;
  std::string body;
};

// Runs the tasks that `start` makes, a bounded number at once.
template <class T, class Start>
rt::Task<std::vector<T>> InTurns(size_t count, Start start) {
  std::vector<T> out;
  out.reserve(count);
  for (size_t begin = 0; begin < count; begin += kBatchInFlight) {
    std::vector<rt::Task<T>> tasks;
    for (size_t i = begin; i < std::min(begin + kBatchInFlight, count); ++i) {
      tasks.push_back(start(i));
    }
    auto answers = co_await rt::JoinAll(std::move(tasks));
    for (T& answer : answers) out.push_back(std::move(answer));
  }
  co_return out;
}

}  // namespace berth::client
