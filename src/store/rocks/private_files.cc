// SPDX-License-Identifier: Apache-2.0
#include "store/rocks/private_files.h"

#include <rocksdb/file_system.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace berth::store {
namespace {

using rocksdb::FileOptions;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;

// The folder is 0700, so nobody can open a file between its making and the chmod.
IOStatus MakePrivate(const std::string& name) {
  if (::chmod(name.c_str(), 0600) == 0) return IOStatus::OK();
  return IOStatus::IOError("while making private: " + name, std::strerror(errno));
}

class PrivateFiles final : public rocksdb::FileSystemWrapper {
 public:
  PrivateFiles() : FileSystemWrapper(rocksdb::FileSystem::Default()) {}
  const char* Name() const override { return "PrivateFiles"; }

  IOStatus NewWritableFile(const std::string& name,
                           const FileOptions& options,
                           std::unique_ptr<rocksdb::FSWritableFile>* file,
                           IODebugContext* debug) override {
    const IOStatus made = target()->NewWritableFile(name, options, file, debug);
    return made.ok() ? MakePrivate(name) : made;
  }
  IOStatus LockFile(const std::string& name,
                    const IOOptions& options,
                    rocksdb::FileLock** lock,
                    IODebugContext* debug) override {
    const IOStatus locked = target()->LockFile(name, options, lock, debug);
    return locked.ok() ? MakePrivate(name) : locked;
  }
  IOStatus NewLogger(const std::string& name,
                     const IOOptions& options,
                     std::shared_ptr<rocksdb::Logger>* logger,
                     IODebugContext* debug) override {
    const IOStatus made = target()->NewLogger(name, options, logger, debug);
    return made.ok() ? MakePrivate(name) : made;
  }
};

}  // namespace

std::unique_ptr<rocksdb::Env> NewPrivateFilesEnv() {
  return rocksdb::NewCompositeEnv(std::make_shared<PrivateFiles>());
}

}  // namespace berth::store
