// SPDX-License-Identifier: Apache-2.0
#include "app/server_store.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <utility>

#include "app/leading/presence.h"
#include "app/leading/shared_authority.h"
#include "app/poollet/hardware.h"
#include "app/sealed_server_store.h"
#include "app/server_flags.h"
#include "base/log.h"
#include "base/uid.h"
#include "net/owned_fd.h"
#include "pki/private_file.h"
#include "rt/deadline.h"
#include "store/etcd/etcd_store.h"
#include "store/rocks/auto_recovery.h"
#include "store/rocks/rocks_store.h"

namespace berth::app {
namespace {

constexpr Duration kLeaveLimit = Duration::Seconds(2);

class EmbeddedStore final : public ServerStore {
 public:
  explicit EmbeddedStore(std::unique_ptr<store::RocksStore> store)
      : store_(std::move(store)), handle_(store_->NewHandle()) {}

  store::Store& handle() override { return *handle_; }
  Status health() const override { return store_->health(); }
  rt::Task<Status> Upkeep() override { return store::RecoverAfterFullDisk(store_.get()); }
  rt::Task<Status> Close() override {
    handle_.reset();
    return store_->Close();
  }

 private:
  std::unique_ptr<store::RocksStore> store_;
  std::unique_ptr<store::Store> handle_;
};

class SharedStore final : public ServerStore {
 public:
  SharedStore(std::unique_ptr<net::OwnedFd> lock,
              std::string id,
              std::string name,
              std::unique_ptr<store::EtcdStore> store)
      : lock_(std::move(lock)),
        id_(std::move(id)),
        store_(std::move(store)),
        handle_(store_->NewHandle()),
        presence_(std::make_unique<Presence>(*handle_, id_, std::move(name))) {}
  rt::Task<Status> Mark() { return presence_->Mark(); }

  store::Store& handle() override { return *handle_; }
  std::string id() const override { return id_; }
  Status health() const override { return store_->health(); }
  rt::Task<Status> Upkeep() override { return presence_->Keep(); }
  rt::Task<Status> Close() override {
    // etcd may be gone; then the mark goes by itself.
    const Status left = co_await rt::WithDeadline(presence_->Leave(), kLeaveLimit);
    if (!left.ok()) LOG_WARNING("etcd: leaving: {}", left.message());
    presence_.reset();
    handle_.reset();
    co_return co_await store_->Close();
  }

 private:
  const std::unique_ptr<net::OwnedFd> lock_;
  const std::string id_;
  std::unique_ptr<store::EtcdStore> store_;
  std::unique_ptr<store::Store> handle_;
  std::unique_ptr<Presence> presence_;
};

// Held as long as the process lives, however it ends.
Result<std::unique_ptr<net::OwnedFd>> LockFolder(const std::string& folder) {
  const std::string path = folder + "/server.lock";
  auto file =
      std::make_unique<net::OwnedFd>(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (file->get() < 0) return Unavailable("lock " + path + ": " + std::strerror(errno));
  if (flock(file->get(), LOCK_EX | LOCK_NB) == 0) return file;
  if (errno != EWOULDBLOCK) return Unavailable("lock " + path + ": " + std::strerror(errno));
  return Conflict("a server uses the data folder " + folder + ": stop it first");
}

// What the folder is known by; made once.
Result<std::string> FolderId(rt::Loop& loop, const std::string& folder) {
  const std::string path = folder + "/server-id";
  if (std::filesystem::exists(path)) {
    TRY(std::string id, pki::ReadPrivateFile(path));
    if (IsUid(id)) return id;
    return BadRequest(path + " does not hold an id: remove it");
  }
  std::string id = NewUid(loop.random());
  TRY_STATUS(pki::WritePrivateFile(path, id));
  return id;
}

rt::Task<Result<std::unique_ptr<ServerStore>>> OpenEtcd(rt::AsioLoop* loop, ServerOptions options) {
  CO_TRY(std::unique_ptr<net::OwnedFd> lock, LockFolder(options.data_dir));
  CO_TRY(std::string id, FolderId(*loop, options.data_dir));
  if (const auto remote = PlainRemoteMember(*options.etcd)) {
    LOG_WARNING(
        "etcd: {} is spoken to without TLS: whoever is on the way reads and changes everything"
        " but Secrets; --etcd-ca turns TLS on",
        *remote);
  }
  CO_TRY(auto etcd, co_await store::EtcdStore::Open(*loop, *std::move(options.etcd)));
  auto shared = std::make_unique<SharedStore>(
      std::move(lock), std::move(id), Hostname() + ":" + options.data_dir, std::move(etcd));
  Status begun = OkStatus();
  // Before anything is written, the mark and the keys' too: the etcd may not be the one that was
  // meant.
  if (options.no_authority == pki::NoAuthority::kIsRefused) {
    const std::string folder = options.data_dir + "/pki";
    begun = co_await CheckSharedAuthority(&shared->handle(), folder, loop->WallNow());
  }
  if (begun.ok()) begun = co_await shared->Mark();
  if (begun.ok()) co_return std::unique_ptr<ServerStore>(std::move(shared));
  CO_TRY_STATUS(co_await shared->Close());
  co_return begun;
}

Result<std::unique_ptr<ServerStore>> OpenEmbedded(rt::AsioLoop& loop,
                                                  const ServerOptions& options,
                                                  store::CommitObserver* observer) {
  store::RocksOptions rocks;
  rocks.dir = options.data_dir + "/store";
  rocks.observer = observer;
  TRY(auto store, store::RocksStore::Open(loop, std::move(rocks)));
  return std::unique_ptr<ServerStore>(std::make_unique<EmbeddedStore>(std::move(store)));
}

}  // namespace

rt::Task<Result<std::unique_ptr<ServerStore>>> ServerStore::Open(rt::AsioLoop& loop,
                                                                 ServerOptions options,
                                                                 store::CommitObserver* observer) {
  std::string key_file =
      options.key_file.empty() ? DefaultKeyFile(options.data_dir) : options.key_file;
  std::unique_ptr<ServerStore> opened;
  if (options.etcd.has_value()) {
    CO_TRY(opened, co_await OpenEtcd(&loop, std::move(options)));
  } else {
    CO_TRY(opened, OpenEmbedded(loop, options, observer));
  }
  co_return co_await SealServerStore(std::move(opened), std::move(key_file));
}

}  // namespace berth::app
