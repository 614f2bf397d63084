// SPDX-License-Identifier: Apache-2.0
// The Shelf of production:
//
//   DIR/lock                        held by the one runtime that uses the folder
//   DIR/volumes/ID/record.json      mode 0600
//   DIR/volumes/ID/disk.qcow2       mode 0600; disk.raw, disk.luks
//   DIR/volumes/ID/part.qcow2       while it is made
//   DIR/snapshots/ID/...            the same
//
// Folders may be passed through by others, so that an unprivileged QEMU reaches a disk that was
// given to it: one that it uses, or a part into which it copies one. A disk that is whole is ours
// again.
#pragma once

#include <memory>
#include <string>

#include "rt/blocking_pool.h"
#include "runtime/volume/shelf.h"

namespace berth::runtime {

class FolderShelf final : public Shelf {
 public:
  // Makes the folder, with those above it, where they are missing, and locks it. Conflict if
  // another process has it; BadRequest if it is not an absolute path. The pool outlives the shelf.
  // Blocks.
  static Result<std::unique_ptr<FolderShelf>> Open(std::string folder, rt::BlockingPool& pool);
  ~FolderShelf() override;
  FolderShelf(const FolderShelf&) = delete;
  FolderShelf& operator=(const FolderShelf&) = delete;

  rt::Task<Result<std::vector<ShelfItem>>> Load() override;
  rt::Task<Status> Put(ShelfKind kind, std::string id, std::string record) override;
  rt::Task<Result<DiskPresence>> Prepare(ShelfKind kind,
                                         std::string id,
                                         DiskFormat format) override;
  rt::Task<Status> Settle(ShelfKind kind, std::string id, DiskFormat format) override;
  rt::Task<Status> Remove(ShelfKind kind, std::string id) override;
  rt::Task<Result<ShelfRoom>> Room() override;

  DiskFile PartOf(ShelfKind kind, std::string_view id, DiskFormat format) const override;
  DiskFile DiskOf(ShelfKind kind, std::string_view id, DiskFormat format) const override;

 private:
  FolderShelf(std::string folder, int lock, rt::BlockingPool& pool);
  std::string FolderOf(ShelfKind kind) const;
  std::string FolderOf(ShelfKind kind, std::string_view id) const;

  const std::string folder_;
  const int lock_;
  rt::BlockingPool& pool_;
};

}  // namespace berth::runtime
