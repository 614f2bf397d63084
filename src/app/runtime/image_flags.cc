// SPDX-License-Identifier: Apache-2.0
#include "app/runtime/image_flags.h"

#include <string>
#include <utility>

#include "app/runtime/runtime_flags.h"
#include "base/log.h"
#include "base/strings.h"
#include "cli/files.h"
#include "net/tls.h"
#include "pki/digest.h"

namespace berth::app {

Result<runtime::HostImages::Options> ImageOptionsOf(const cli::Arguments& arguments) {
  TRY(runtime::HostImages::Options options, RegistryOptionsOf(arguments));
  if (!arguments.Text("images").empty()) {
    TRY(options.folder, AbsolutePath(arguments.Text("images"), "images"));
  }
  return options;
}

Result<runtime::HostImages::Options> RegistryOptionsOf(const cli::Arguments& arguments) {
  runtime::HostImages::Options options;
  if (!arguments.Text("registry-credentials").empty()) {
    TRY(options.credentials_folder,
        AbsolutePath(arguments.Text("registry-credentials"), "registry-credentials"));
  }
  TRY(options.puller.image_bytes_max,
      ParseAmount(arguments, "image-size-max", "a size such as 10Gi"));
  TRY(options.puller.cache_bytes_max, ParseAmount(arguments, "image-cache", "a size such as 64Gi"));
  for (const std::string& host : arguments.List("registry")) {
    options.puller.registry.addresses.trusted.insert(ToLower(host));
  }
  net::TlsClientOptions tls;
  if (!arguments.Text("registry-ca").empty()) {
    Result<std::string> pem = cli::ReadFile(arguments.Text("registry-ca"));
    if (!pem.ok()) return pem.status().Wrap("--registry-ca");
    tls.ca_pem = *std::move(pem);
  }
  auto context = net::TlsContext::NewClient(tls);
  if (!context.ok()) return context.status().Wrap("--registry-ca " + arguments.Text("registry-ca"));
  options.puller.registry.tls = *std::move(context);
  return options;
}

std::string LonePromiseWarning(const cli::Arguments& arguments, Promises promises) {
  if (!arguments.Text("disk-budget").empty()) return {};
  if (promises == Promises::kImages && arguments.Text("images").empty()) return {};
  return "what another runtime promises of this host's disk is not known here, and the same room "
         "may be promised twice: start the runtimes of volumes and of machines with the same "
         "--disk-budget DIR";
}

Result<std::unique_ptr<runtime::SharedBudget>> BudgetOf(const cli::Arguments& arguments,
                                                        Promises promises,
                                                        std::string_view role,
                                                        const std::string& folder,
                                                        rt::BlockingPool& files) {
  if (const std::string warning = LonePromiseWarning(arguments, promises); !warning.empty()) {
    LOG_WARNING("{}", warning);
  }
  if (arguments.Text("disk-budget").empty()) return std::unique_ptr<runtime::SharedBudget>();
  constexpr size_t kNameLength = 12;
  TRY(std::string path, AbsolutePath(arguments.Text("disk-budget"), "disk-budget"));
  return runtime::SharedBudget::Open(
      std::move(path),
      std::string(role) + "-" + pki::Sha256Hex(folder).substr(0, kNameLength),
      files);
}

}  // namespace berth::app
