// SPDX-License-Identifier: Apache-2.0
// The files of a store that is being written, under second names: a folder that RocksDB opens for
// reading and finds everything in that was acknowledged before.
#pragma once

#include <functional>
#include <string>

#include "base/result.h"

namespace berth::store {

// A folder beside the store's, so that both are on one file system; removed with this object.
class LinkedFolder {
 public:
  // Where the store of `dir` is read from outside; nothing is made yet.
  explicit LinkedFolder(const std::string& dir);
  ~LinkedFolder();
  LinkedFolder(const LinkedFolder&) = delete;
  LinkedFolder& operator=(const LinkedFolder&) = delete;

  // Empties the folder and fills it. First the logs of writes, then the description of the files,
  // then the files: whatever leaves a log meanwhile is in the description. RocksDB's own secondary
  // takes the description first and misses what is written out between the two.
  // A file that the writer took away is missing in the folder: its opening fails, and one links
  // again. `between` is called when the logs are linked: tests let the writer go on there.
  Status Link(const std::function<void()>& between = {});
  // Open files stay readable.
  void Remove();

  const std::string& path() const { return path_; }

 private:
  Status Prepare();
  Status LinkLogs() const;
  Status CopyDescription() const;
  Status LinkTables() const;

  const std::string dir_;
  std::string path_;
};

// Removes what readers that were killed left beside the store of `dir`.
void RemoveLinkedFolders(const std::string& dir);

}  // namespace berth::store
