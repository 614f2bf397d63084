// SPDX-License-Identifier: Apache-2.0
// The store of a server with its Secrets encrypted (store/sealed). The keys are in a private file
// that may get further keys while the server runs: what is stored is then encrypted anew, piece by
// piece, and FILE.done says with which key all of it is.
#pragma once

#include <memory>
#include <string>

#include "app/server_store.h"
#include "base/result.h"
#include "rt/task.h"
#include "store/sealed/sealed_store.h"

namespace berth::app {

// Whose values are encrypted: Secrets, the authority of several servers, and a mark that shows
// whether a server has the right keys.
const store::SealedKeys& ServerSealedKeys();

// Makes the key file if it is not there. Refused, with the id of the key, if the store was written
// with keys that the file lacks. `inner` is closed if it fails.
rt::Task<Result<std::unique_ptr<ServerStore>>> SealServerStore(std::unique_ptr<ServerStore> inner,
                                                               std::string key_file);

// "ID", once everything is encrypted with that key; "" before. For whoever waits for it.
std::string ReadSealedDone(const std::string& key_file);

}  // namespace berth::app
