// SPDX-License-Identifier: Apache-2.0
#include "store/etcd/testing/client_links.h"

#include <cstdint>
#include <utility>

#include "base/check.h"
#include "net/socket.h"
#include "net/stream.h"
#include "net/url.h"

namespace berth::store {

ClientLinks::ClientLinks(rt::AsioLoop& loop, const std::vector<std::string>& members)
    : loop_(loop), scope_(loop) {
  for (const std::string& member : members) {
    const auto where = net::ParseHostPort(member, 0);
    CHECK(where.ok()) << where.status();
    const Result<int> listener = net::ListenTcp("127.0.0.1", 0);
    CHECK(listener.ok()) << listener.status();
    const auto take = [this, target = where->port](int fd) {
      net::ConfigureTcp(fd);  // or small messages wait 40 ms for acknowledgements
      Way way{.is_cut = [this] { return is_cut_; }, .healed = &healed_};
      auto near = std::make_unique<net::PlainStream>(loop_, fd);
      scope_.Spawn("etcd.link", CarryBytes(&loop_, std::move(way), std::move(near), target));
    };
    acceptors_.push_back(std::make_unique<net::Acceptor>(loop_, *listener, take));
    endpoints_.push_back(acceptors_.back()->address());
  }
}

ClientLinks::~ClientLinks() { CHECK(rt::RunTask(loop_, Close()).ok()); }

rt::Task<Status> ClientLinks::Close() {
  for (const auto& acceptor : acceptors_) CO_TRY_STATUS(co_await acceptor->Stop());
  co_return co_await scope_.Close();
}

void ClientLinks::Heal() {
  is_cut_ = false;
  healed_.Set();
  healed_.Reset();
}

}  // namespace berth::store
