// SPDX-License-Identifier: Apache-2.0
#include "app/images/image_pull.h"

#include <fmt/core.h>

#include <ostream>
#include <utility>

#include "app/images/folder_owner.h"
#include "app/images/size_text.h"
#include "base/strings.h"
#include "cli/failure.h"
#include "cli/files.h"
#include "cli/render/progress_bar.h"
#include "image/image_folder.h"
#include "image/manifest.h"
#include "image/registry/puller.h"
#include "net/tls.h"
#include "rt/asio/asio_loop.h"
#include "rt/thread_pool.h"

namespace berth::app {
namespace {

using cli::Arguments;
using cli::Session;

Result<image::PullerOptions> OptionsOf(const Arguments& arguments,
                                       const image::Reference& reference) {
  image::PullerOptions options;
  // Who types the name of a registry means it; redirects to other private places are still refused.
  options.registry.addresses.trusted = {reference.registry};
  for (const std::string& host : arguments.List("registry")) {
    options.registry.addresses.trusted.insert(ToLower(host));
  }
  net::TlsClientOptions tls;
  if (!arguments.Text("registry-ca").empty()) {
    TRY(tls.ca_pem, cli::ReadFile(arguments.Text("registry-ca")));
  }
  auto context = net::TlsContext::NewClient(tls);
  if (!context.ok()) return context.status().Wrap("--registry-ca " + arguments.Text("registry-ca"));
  options.registry.tls = *std::move(context);
  return options;
}

Result<image::Credentials> CredentialsOf(const Arguments& arguments, const std::string& registry) {
  const std::string& path = arguments.Text("credentials");
  if (path.empty()) return image::Credentials();
  TRY(const std::string text, cli::ReadFile(path));
  Result<image::Credentials> found = image::CredentialsFor(text, registry);
  if (!found.ok()) return found.status().Wrap(path);
  return found;
}

// On a terminal alone.
std::function<void(int64_t bytes, int64_t of)> ProgressOn(Session& session,
                                                          cli::ProgressBar& bar,
                                                          std::string_view how) {
  if (!session.environment().terminal.out_is_terminal) return {};
  return [&bar, how](int64_t bytes, int64_t of) {
    bar.Show(static_cast<size_t>(bytes),
             static_cast<size_t>(of),
             fmt::format("{} of {} {}", SizeText(bytes), SizeText(of), how));
  };
}

Status Advised(const Status& failed) {
  if (failed.Is(Reason::kUnauthorized) || failed.Is(Reason::kForbidden)) {
    return cli::Advise(failed, "name a file as `docker login` writes it with --credentials");
  }
  if (net::IsTrustFailure(failed)) {
    return cli::Advise(failed, "name the registry's authority with --registry-ca");
  }
  if (failed.Is(Reason::kUnavailable)) {
    return cli::Advise(failed, "try again: it goes on behind what has come");
  }
  return failed;
}

}  // namespace

Status PullImage(Session& session, const Arguments& arguments, const std::string& folder) {
  if (arguments.words().size() != 1) {
    return cli::Advise(BadRequest("one image is needed"),
                       "berth image pull registry.example/os/debian:12");
  }
  const std::string& name = arguments.words().front();
  TRY(const image::Reference reference, image::ParseReference(name));
  if (reference.registry.empty()) {
    return cli::Advise(BadRequest(Quote(name) + " names no registry"),
                       "berth image pull registry.example/" + ToText(reference));
  }
  TRY(image::PullerOptions options, OptionsOf(arguments, reference));
  image::PullRequest request;
  request.reference = reference;
  request.architecture = arguments.Text("architecture");
  TRY(request.credentials, CredentialsOf(arguments, reference.registry));
  TRY_STATUS(BecomeOwnerOf(folder));  // who has read all that was named
  cli::ProgressBar bar(session.environment(), "image");
  request.progress = ProgressOn(session, bar, "fetched");
  request.unpacking = ProgressOn(session, bar, "unpacked");
  rt::AsioLoop loop("pull");
  rt::ThreadPool files({.threads = 1, .queue_max = 16, .name = "files"});
  image::Puller puller(
      loop, files, image::ImageFolder(folder).registry_layout(), std::move(options));
  const auto pulled = rt::RunTask(loop, puller.Pull(std::move(request)));
  bar.Wipe();
  if (!pulled.ok()) return Advised(pulled.status());
  session.out() << fmt::format(
      "pulled  {}\ndigest  sha256:{}\n", ToText(reference), pulled->digest);
  return OkStatus();
}

}  // namespace berth::app
