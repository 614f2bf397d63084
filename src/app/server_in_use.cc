// SPDX-License-Identifier: Apache-2.0
#include "app/server_in_use.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

#include "net/owned_fd.h"

namespace berth::app {

// RocksDB holds a lock on this file as long as a process has the store open.
bool IsStoreInUse(const std::string& store) {
  const std::string path = store + "/LOCK";
  const net::OwnedFd file(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (file.get() < 0) return false;
  struct flock lock{};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return fcntl(file.get(), F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

bool IsServerRunning(const std::string& data_dir) {
  if (IsStoreInUse(data_dir + "/store")) return true;
  // A server on an etcd holds this one.
  const std::string path = data_dir + "/server.lock";
  const net::OwnedFd file(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (file.get() < 0) return false;
  return flock(file.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

}  // namespace berth::app
