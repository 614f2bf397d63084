// SPDX-License-Identifier: Apache-2.0
#include "runtime/machine/libvirt_library.h"

#include <dlfcn.h>
#include <fmt/core.h>

#include "base/check.h"

namespace berth::runtime {
namespace {

constexpr char kLibrary[] = "libvirt.so.0";

struct Loaded {
  LibvirtFunctions functions;
  Status status;
};

std::string LastLoaderError() {
  const char* text = ::dlerror();
  return text == nullptr ? "no reason given" : text;
}

// For ever: libvirt has threads and events of its own.
Loaded Load() {
  Loaded loaded;
  void* library = ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    loaded.status = Unavailable(fmt::format(
        "libvirt cannot be loaded: {}: is the package libvirt0 installed?", LastLoaderError()));
    return loaded;
  }
#define BERTH_LIBVIRT_LOAD(name)                                                  \
  loaded.functions.name =                                                         \
      reinterpret_cast<decltype(loaded.functions.name)>(::dlsym(library, #name)); \
  if (loaded.functions.name == nullptr) {                                         \
    loaded.status = Unavailable("libvirt is too old: it has no " #name);          \
    return loaded;                                                                \
  }
  BERTH_LIBVIRT_FUNCTIONS(BERTH_LIBVIRT_LOAD)
#undef BERTH_LIBVIRT_LOAD
  return loaded;
}

const Loaded& TheLibrary() {
  static const Loaded loaded = Load();
  return loaded;
}

}  // namespace

Status LoadLibvirt() { return TheLibrary().status; }

const LibvirtFunctions& Libvirt() {
  const Loaded& loaded = TheLibrary();
  CHECK(loaded.status.ok()) << loaded.status;
  return loaded.functions;
}

}  // namespace berth::runtime
