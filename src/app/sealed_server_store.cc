// SPDX-License-Identifier: Apache-2.0
#include "app/sealed_server_store.h"

#include <filesystem>
#include <utility>
#include <vector>

#include "apis/k8s/secret.h"
#include "apiserver/cache/keys.h"
#include "app/backup/state_copy.h"
#include "app/leading/shared_authority.h"
#include "base/log.h"
#include "base/strings.h"
#include "pki/private_file.h"
#include "rt/join_all.h"
#include "rt/sleep.h"
#include "store/rebased/rebased_store.h"

namespace berth::app {
namespace {

constexpr std::string_view kMarkKey = "/guard/encryption";
constexpr Duration kLook = Duration::Seconds(1);

class SealedServerStore final : public ServerStore {
 public:
  SealedServerStore(std::unique_ptr<ServerStore> inner,
                    int64_t base,
                    std::shared_ptr<store::KeyFile> keys)
      : inner_(std::move(inner)),
        keys_(std::move(keys)),
        rebased_(inner_->handle(), base),
        below_(base == 0 ? inner_->handle() : rebased_),
        handle_(below_, keys_, ServerSealedKeys()) {}

  store::Store& handle() override { return handle_; }
  std::string id() const override { return inner_->id(); }
  Status health() const override { return inner_->health(); }
  rt::Task<Status> Upkeep() override {
    std::vector<rt::Task<Status>> tasks;
    tasks.push_back(inner_->Upkeep());
    tasks.push_back(KeepSealed());
    const std::vector<Status> ends = co_await rt::JoinAll(std::move(tasks));
    co_return ends.front();
  }
  rt::Task<Status> Close() override { return inner_->Close(); }

  // Reading the mark needs its key; a store without one gets it.
  rt::Task<Status> CheckMark() {
    store::RangeRequest request;
    request.start = kMarkKey;
    CO_TRY(const store::RangeResult found, co_await handle_.Range(std::move(request)));
    if (!found.items.empty()) co_return OkStatus();
    store::Txn txn;
    txn.conditions.push_back(store::Condition::Absent(std::string(kMarkKey)));
    txn.ops.push_back(store::Op::Put(std::string(kMarkKey), Bytes("berth")));
    CO_TRY(const store::TxnResult result, co_await handle_.Commit(std::move(txn)));
    (void)result;  // if another server was faster, opening its mark has shown that the keys fit
    co_return OkStatus();
  }

 private:
  // Once for what an older version or an interrupted change left, then whenever the file changes.
  rt::Task<Status> KeepSealed() {
    std::string last_failure;
    while (true) {
      CO_TRY_STATUS(co_await rt::Sleep(kLook));
      const Status kept = co_await KeepOnce();
      if (kept.Is(Reason::kCancelled)) co_return kept;
      std::string failure = kept.ok() ? "" : kept.ToString();
      if (failure != last_failure && !kept.ok()) LOG_WARNING("encryption keys: {}", failure);
      last_failure = std::move(failure);
    }
  }

  rt::Task<Status> KeepOnce() {
    std::error_code error;
    const auto changed = std::filesystem::last_write_time(keys_->path(), error);
    if (error) co_return Unavailable(keys_->path() + ": " + error.message());
    if (changed != seen_) {
      CO_TRY_STATUS(keys_->Reload());
      seen_ = changed;
    }
    const std::string id = keys_->ring().first().id;
    if (id == done_) co_return OkStatus();
    CO_TRY(const store::Resealed resealed,
           co_await store::ResealAll(below_, keys_, ServerSealedKeys()));
    if (id != keys_->ring().first().id) co_return OkStatus();  // changed again meanwhile
    if (resealed.changed > 0) {
      LOG_INFO(
          "{} of {} values are encrypted anew, with key {}", resealed.changed, resealed.values, id);
    }
    if (ReadSealedDone(keys_->path()) != id) {
      CO_TRY_STATUS(pki::WritePrivateFile(keys_->path() + ".done", id + "\n"));
    }
    done_ = id;
    co_return OkStatus();
  }

  const std::unique_ptr<ServerStore> inner_;
  const std::shared_ptr<store::KeyFile> keys_;
  store::RebasedStore rebased_;
  store::Store& below_;
  store::SealedStore handle_;
  std::filesystem::file_time_type seen_;
  std::string done_;
};

rt::Task<Result<std::unique_ptr<ServerStore>>> Seal(std::unique_ptr<ServerStore>* inner,
                                                    std::string key_file) {
  const std::string folder = std::filesystem::path(key_file).parent_path().string();
  if (!folder.empty() && !std::filesystem::exists(folder)) {
    CO_TRY_STATUS(pki::EnsurePrivateFolder(folder));
  }
  CO_TRY_STATUS(co_await CheckFilled((*inner)->handle()));
  CO_TRY(const int64_t base, co_await ReadRevisionBase((*inner)->handle()));
  CO_TRY(std::shared_ptr<store::KeyFile> keys,
         store::KeyFile::Open(std::move(key_file), store::MissingKeys::kMake));
  auto sealed = std::make_unique<SealedServerStore>(std::move(*inner), base, std::move(keys));
  const Status fits = co_await sealed->CheckMark();
  if (fits.ok()) co_return std::unique_ptr<ServerStore>(std::move(sealed));
  CO_TRY_STATUS(co_await sealed->Close());
  co_return fits;
}

}  // namespace

const store::SealedKeys& ServerSealedKeys() {
  static const store::SealedKeys keys{.prefixes = {apiserver::KeyPrefix(apis::k8s::kSecretKind),
                                                   std::string(kMarkKey),
                                                   std::string(kAuthorityKey)}};
  return keys;
}

rt::Task<Result<std::unique_ptr<ServerStore>>> SealServerStore(std::unique_ptr<ServerStore> inner,
                                                               std::string key_file) {
  Result<std::unique_ptr<ServerStore>> sealed = co_await Seal(&inner, std::move(key_file));
  if (inner != nullptr) CO_TRY_STATUS(co_await inner->Close());
  co_return sealed;
}

std::string ReadSealedDone(const std::string& key_file) {
  const Result<std::string> text = pki::ReadPrivateFile(key_file + ".done");
  return text.ok() ? std::string(Trim(*text)) : std::string();
}

}  // namespace berth::app
