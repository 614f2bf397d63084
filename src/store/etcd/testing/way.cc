// SPDX-License-Identifier: Apache-2.0
#include "store/etcd/testing/way.h"

#include <array>
#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include "net/socket.h"
#include "rt/join_all.h"

namespace berth::store {
namespace {

constexpr size_t kChunk = 65'536;

// Ends when either end does: each way tells its sink.
rt::Task<Status> Copy(const Way* way, net::Stream* source, net::Stream* sink) {
  std::vector<char> bytes(kChunk);
  for (;;) {
    const Result<size_t> count = co_await source->Read(bytes);
    if (count.status().Is(Reason::kCancelled)) co_return count.status();
    while (way->is_cut()) CO_TRY_STATUS(co_await way->healed->Wait());
    if (!count.ok() || *count == 0) break;
    const std::array parts = {std::string_view(bytes.data(), *count)};
    const Status written = co_await sink->Write(parts);
    if (written.Is(Reason::kCancelled)) co_return written;
    if (!written.ok()) break;
  }
  sink->Shutdown();
  source->Shutdown();
  co_return OkStatus();
}

}  // namespace

rt::Task<Status> CarryBytes(rt::AsioLoop* loop,
                            Way way,
                            std::unique_ptr<net::Stream> near,
                            uint16_t target) {
  const Result<int> fd = co_await net::ConnectTcp(loop, "127.0.0.1", target);
  if (!fd.ok()) co_return fd.status().Is(Reason::kCancelled) ? fd.status() : OkStatus();
  net::PlainStream far(*loop, *fd);
  std::vector<rt::Task<Status>> ways;
  ways.push_back(Copy(&way, near.get(), &far));
  ways.push_back(Copy(&way, &far, near.get()));
  for (const Status& ended : co_await rt::JoinAll(std::move(ways))) CO_TRY_STATUS(ended);
  co_return OkStatus();
}

}  // namespace berth::store
