// SPDX-License-Identifier: Apache-2.0
// Pulls from a registry that may lie, stop half-way, be gone, or want to know who asks: what is
// entered is what was asked for, everything else is an error that says so and leaves nothing.
#include "image/registry/puller.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>

#include "base/strings.h"
#include "image/file_writer.h"
#include "image/layout_writer.h"
#include "image/registry/blob_origins.h"
#include "image/registry/cache_trim.h"
#include "image/testing/packed.h"
#include "image/testing/temporary_folder.h"
#include "net/http_server.h"
#include "net/testing/http_fixture.h"
#include "net/tls.h"
#include "net/url.h"
#include "pki/digest.h"
#include "rt/thread_pool.h"

namespace berth::image {
namespace {

// What a registry has and how it behaves.
struct FakeRegistry {
  struct Item {
    std::string type;
    std::string body;
  };
  std::map<std::string, Item> items;  // by path
  std::string cut_path;               // of this, only so many bytes come at a time
  size_t cut_bytes = 0;
  int cuts = 0;      // how often
  std::string user;  // who may; "" for everybody
  bool resumes = true;
  std::string moved_to;           // where blobs are: "https://localhost:1"
  std::vector<std::string> seen;  // "path range authorization"

  net::HttpResponse Answer(const net::HttpRequest& request) {
    net::HttpResponse response;
    seen.push_back(request.target + " " + std::string(request.headers.Get("Range")) + " " +
                   std::string(request.headers.Get("Authorization")));
    const net::Target target = net::SplitTarget(request.target);
    if (target.path == "/token") return Token(request);
    const bool is_moved = target.path.starts_with("/moved/");
    if (!user.empty() && !is_moved && request.headers.Get("Authorization") != "Bearer good") {
      response.status = 401;
      response.headers.Set("WWW-Authenticate",
                           "Bearer realm=\"https://" + std::string(request.headers.Get("Host")) +
                               "/token\",service=\"fake\"");
      return response;
    }
    std::string path(target.path);
    if (is_moved) path = path.substr(6);
    if (!moved_to.empty() && !is_moved && path.find("/blobs/") != std::string::npos) {
      response.status = 307;
      response.headers.Set("Location", moved_to + "/moved" + path);
      return response;
    }
    return Give(path, request.headers.Get("Range"));
  }
  net::HttpResponse Token(const net::HttpRequest& request) const {
    net::HttpResponse response;
    if (request.headers.Get("Authorization") != "Basic " + Base64Encode(user + ":secret")) {
      response.status = 401;
      return response;
    }
    response.body = {Bytes(R"({"token":"good"})")};
    return response;
  }
  net::HttpResponse Give(const std::string& path, std::string_view range) {
    net::HttpResponse response;
    const auto found = items.find(path);
    if (found == items.end()) {
      response.status = 404;
      return response;
    }
    std::string body = found->second.body;
    response.headers.Set("Content-Type", found->second.type);
    if (resumes && range.starts_with("bytes=")) {
      const auto from = static_cast<size_t>(*ParseInt(range.substr(6, range.size() - 7)));
      if (from >= body.size()) {
        response.status = 416;
        return response;
      }
      response.status = 206;
      response.headers.Set("Content-Range",
                           "bytes " + std::to_string(from) + "-" + std::to_string(body.size() - 1) +
                               "/" + std::to_string(body.size()));
      body = body.substr(from);
    }
    if (path == cut_path && cuts > 0) {
      --cuts;
      response.stream = [part = body.substr(0, cut_bytes)](net::BodyWriter& writer) {
        return Cut(&writer, part);
      };
      return response;
    }
    response.body = {Bytes(body)};
    return response;
  }
  static rt::Task<Status> Cut(net::BodyWriter* writer, std::string part) {
    std::vector<Bytes> parts = {Bytes(part)};
    CO_TRY_STATUS(co_await writer->Write(std::move(parts)));
    co_return Unavailable("pulled the plug");
  }
};

rt::Task<net::HttpResponse> Serve(FakeRegistry* registry, net::HttpRequest request) {
  co_return registry->Answer(request);
}

class PullerTest : public testing::Test {
 protected:
  PullerTest() {
    net::HttpServerOptions options;
    options.tls = tls_.server();
    auto server =
        net::HttpServer::Start(loop_, std::move(options), [this](net::HttpRequest request) {
          return Serve(&registry_, std::move(request));
        });
    CHECK(server.ok()) << server.status();
    server_ = *std::move(server);
    host_ = server_->address();
    options_.registry.tls = tls_.client();
    options_.registry.addresses.trusted = {host_, "localhost:" + std::to_string(server_->port())};
    options_.registry.answer_limit = Duration::Seconds(5);
    manifest_.kernel = Put(MediaTypeOf(Part::kKernel), "the kernel");
    manifest_.root_disk = Put(MediaTypeOf(Part::kRootDisk), std::string(300'000, 'd'));
    Tag("1", kManifestType, ManifestText(manifest_));
  }
  ~PullerTest() override { StopServer(); }
  void StopServer() {
    if (server_ == nullptr) return;
    const Status stopped = rt::RunTask(loop_, server_->Stop());
    EXPECT_TRUE(stopped.ok());
    server_.reset();
  }

  Descriptor Put(std::string_view type, const std::string& content) {
    Descriptor descriptor{.media_type = std::string(type),
                          .digest = pki::Sha256Hex(content),
                          .size = static_cast<int64_t>(content.size())};
    registry_.items[BlobPath(descriptor)] = {"application/octet-stream", content};
    return descriptor;
  }
  static std::string BlobPath(const Descriptor& blob) {
    return "/v2/os/demo/blobs/sha256:" + blob.digest;
  }
  // Under its digest, too.
  std::string Tag(const std::string& tag, std::string_view type, const std::string& text) {
    const std::string digest = pki::Sha256Hex(text);
    for (const std::string& name : {tag, "sha256:" + digest}) {
      registry_.items["/v2/os/demo/manifests/" + name] = {std::string(type), text};
    }
    return digest;
  }
  Result<ImageFiles> Pull(const std::string& tag, Credentials credentials = {}) {
    return PullFrom(host_ + "/os/demo" + tag, std::move(credentials));
  }
  Result<ImageFiles> PullFrom(const std::string& image, Credentials credentials = {}) {
    Puller puller(loop_, files_, layout(), options_);
    PullRequest request;
    request.reference = *ParseReference(image);
    request.architecture = "amd64";
    request.credentials = std::move(credentials);
    request.progress = progress_;
    if (room_ >= 0) request.claim = [this](Pieces pieces) { return Claim(std::move(pieces)); };
    return rt::RunTask(loop_, puller.Pull(std::move(request)));
  }
  using Pieces = std::map<std::string, int64_t>;
  // Of a disk that has so much room beside what the cache takes of it.
  rt::Task<Status> Claim(Pieces pieces) {
    int64_t bytes = 0;
    for (const auto& [name, more] : pieces) bytes += more;
    const int64_t cached = *CachedBytes(layout());
    if (cached + bytes > room_) co_return Status(Reason::kTooManyRequests, "no room");
    claims_.push_back(bytes);
    co_return OkStatus();
  }
  Layout layout() const { return Layout(folder_.Sub("cache")); }
  size_t Count(const std::string& name) const {
    size_t count = 0;
    std::error_code failed;
    for (const auto& file :
         std::filesystem::directory_iterator(folder_.Sub("cache/" + name), failed)) {
      count += file.is_regular_file() ? 1 : 0;
    }
    return count;
  }
  size_t Asked(std::string_view what) const {
    size_t count = 0;
    for (const std::string& line : registry_.seen) {
      count += line.find(what) != std::string::npos ? 1 : 0;
    }
    return count;
  }

  rt::AsioLoop loop_{"test"};
  rt::ThreadPool files_{{.threads = 2, .queue_max = 64, .name = "files"}};
  net::TestTls tls_;
  FakeRegistry registry_;
  std::unique_ptr<net::HttpServer> server_;
  std::string host_;
  TemporaryFolder folder_;
  PullerOptions options_;
  std::function<void(int64_t bytes, int64_t of)> progress_;
  int64_t room_ = -1;  // without end
  std::vector<int64_t> claims_;
  Manifest manifest_;
};

TEST_F(PullerTest, AnImageIsFetchedOnceAndVerified) {
  {
    const auto files = Pull(":1");
    ASSERT_TRUE(files.ok()) << files.status();
    EXPECT_EQ(ReadWhole(files->kernel->kernel), "the kernel");
    EXPECT_EQ(ReadWhole(files->disk->path), std::string(300'000, 'd'));
  }
  EXPECT_EQ(Count("parts"), 0U);
  EXPECT_TRUE(Pull(":1").ok());
  EXPECT_EQ(Asked("/blobs/"), 4U) << "for the last byte, which tells whether it may be had";
  EXPECT_EQ(Asked("bytes=9- ") + Asked("bytes=299999- "), 2U);
  EXPECT_EQ(Asked("/manifests/"), 2U);
}

TEST_F(PullerTest, AnIndexIsFollowedByArchitecture) {
  Descriptor entry{.media_type = std::string(kManifestType),
                   .digest = pki::Sha256Hex(ManifestText(manifest_)),
                   .size = static_cast<int64_t>(ManifestText(manifest_).size()),
                   .architecture = "amd64"};
  Tag("multi", kIndexType, IndexText({entry}));
  EXPECT_TRUE(Pull(":multi").ok());
  entry.architecture = "arm64";
  Tag("arm", kIndexType, IndexText({entry}));
  EXPECT_EQ(Pull(":arm").status().reason(), Reason::kNotFound);
  entry.architecture = "amd64";
  entry.size = 1;
  Tag("lying", kIndexType, IndexText({entry}));
  EXPECT_EQ(Pull(":lying").status().reason(), Reason::kBadRequest);
}

TEST_F(PullerTest, AMissingImageIsNotFoundAndThereWhenItIsThere) {
  const Status missing = Pull(":2").status();
  EXPECT_EQ(missing.reason(), Reason::kNotFound);
  EXPECT_NE(missing.message().find("image \"" + host_ + "/os/demo:2\""), std::string_view::npos)
      << missing;
  Tag("2", kManifestType, ManifestText(manifest_));
  EXPECT_TRUE(Pull(":2").ok());
}

TEST_F(PullerTest, ADigestIsWhatWasAskedFor) {
  const std::string digest = pki::Sha256Hex(ManifestText(manifest_));
  EXPECT_TRUE(Pull("@sha256:" + digest).ok());
  registry_.items["/v2/os/demo/manifests/sha256:" + digest].body += " ";
  const Status wrong = Pull("@sha256:" + digest).status();
  EXPECT_EQ(wrong.reason(), Reason::kBadRequest);
  EXPECT_NE(wrong.message().find("expected sha256:" + digest), std::string_view::npos) << wrong;
}

TEST_F(PullerTest, AWrongBlobIsRefusedAndNothingOfItStays) {
  std::string& body = registry_.items[BlobPath(*manifest_.kernel)].body;
  body = "the kerneL";
  const Status wrong = Pull(":1").status();
  EXPECT_EQ(wrong.reason(), Reason::kBadRequest);
  EXPECT_NE(wrong.message().find("expected sha256:"), std::string_view::npos) << wrong;
  EXPECT_EQ(Count("parts"), 0U);
  body = "the kernel and much more than its manifest says";
  EXPECT_NE(Pull(":1").status().message().find("more than the 10 bytes"), std::string_view::npos);
  EXPECT_EQ(Count("parts"), 0U);
  body = "the kernel";
  EXPECT_TRUE(Pull(":1").ok()) << "the cause is gone";
}

TEST_F(PullerTest, ATruncatedBlobIsToldAndCompletedWhenItIsWhole) {
  std::string& body = registry_.items[BlobPath(*manifest_.kernel)].body;
  body = "the ker";
  const Status truncated = Pull(":1").status();
  EXPECT_EQ(truncated.reason(), Reason::kUnavailable);
  EXPECT_NE(truncated.message().find("7 of 10 bytes"), std::string_view::npos) << truncated;
  EXPECT_EQ(Count("parts"), 1U) << "it is resumed from there";
  body = "the kernel";
  registry_.seen.clear();
  EXPECT_TRUE(Pull(":1").ok());
  EXPECT_EQ(Asked("bytes=7-"), 1U);
  EXPECT_EQ(Count("parts"), 0U);
}

TEST_F(PullerTest, ADownloadThatIsCutGoesOnByItself) {
  registry_.cut_path = BlobPath(*manifest_.root_disk);
  registry_.cut_bytes = 70'000;
  registry_.cuts = 3;
  const auto files = Pull(":1");
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_EQ(ReadWhole(files->disk->path), std::string(300'000, 'd'));
  EXPECT_EQ(Asked("bytes=210000-"), 1U);
}

TEST_F(PullerTest, WhoWaitsForTheDownloadOfAnotherSeesHowFarItIs) {
  ASSERT_TRUE(LayoutWriter::Open(layout().folder()).ok());  // its folders are there
  const std::string part =
      PartFile(layout(), manifest_.root_disk->digest + "." + RegistryWord(host_) + ".blob");
  auto other = FileWriter::Open(part, FileWriter::Begin::kEmpty);
  ASSERT_TRUE(other.ok()) << other.status();
  ASSERT_EQ((*other)->Append(std::string(200'000, 'd')), OkStatus());
  // It ends there, when it was seen.
  const int64_t kernel = manifest_.kernel->size;
  bool was_seen = false;
  progress_ = [&](int64_t bytes, int64_t of) {
    EXPECT_EQ(of, 300'000 + kernel);
    if (bytes < 200'000 || bytes > 200'000 + kernel) return;
    was_seen = true;
    other->reset();
  };
  const rt::TimerId timer =
      loop_.After("test", Duration::Seconds(60), [&other] { other->reset(); });
  EXPECT_TRUE(Pull(":1").ok());
  loop_.CancelTimer(timer);
  EXPECT_TRUE(was_seen);
  EXPECT_EQ(Asked("bytes=200000-"), 1U) << "and goes on behind it";
}

TEST_F(PullerTest, ARegistryThatCannotResumeIsAskedFromTheBeginning) {
  registry_.cut_path = BlobPath(*manifest_.root_disk);
  registry_.cut_bytes = 70'000;
  registry_.cuts = 1;
  registry_.resumes = false;
  EXPECT_TRUE(Pull(":1").ok());
}

TEST_F(PullerTest, ARegistryThatIsGoneIsUnavailable) {
  registry_.cut_path = BlobPath(*manifest_.root_disk);
  registry_.cut_bytes = 70'000;
  registry_.cuts = 1000;
  registry_.resumes = false;
  const Status cut = Pull(":1").status();
  EXPECT_EQ(cut.reason(), Reason::kUnavailable) << cut;
  StopServer();
  const Status gone = Pull(":1").status();
  EXPECT_EQ(gone.reason(), Reason::kUnavailable) << gone;
}

TEST_F(PullerTest, ATokenIsFetchedWithTheCredentialsOfTheRegistry) {
  registry_.user = "anna";
  EXPECT_EQ(Pull(":1").status().reason(), Reason::kUnauthorized);
  EXPECT_EQ(Pull(":1", {.user = "anna", .password = "wrong"}).status().reason(),
            Reason::kUnauthorized);
  EXPECT_EQ(Count("blobs/sha256"), 0U);
  EXPECT_TRUE(Pull(":1", {.user = "anna", .password = "secret"}).ok());
  EXPECT_EQ(Pull(":1").status().reason(), Reason::kUnauthorized)
      << "that it is here is no permission";
}

TEST_F(PullerTest, P9_WhoKnowsADigestHasNotTheBlob) {
  ASSERT_TRUE(Pull(":1").ok());
  const std::string manifest = ManifestText(manifest_);
  // In a repository of his own, which does not have it.
  registry_.items["/v2/his/demo/manifests/1"] = {std::string(kManifestType), manifest};
  EXPECT_EQ(PullFrom(host_ + "/his/demo:1").status().reason(), Reason::kNotFound);
  // At a registry of his own, which says that it has everything.
  const std::string his = "localhost:" + std::to_string(server_->port());
  for (const Descriptor& part : manifest_.parts()) {
    registry_.items["/v2/his/demo/blobs/sha256:" + part.digest] = {
        "application/octet-stream", std::string(static_cast<size_t>(part.size), 'x')};
  }
  const Status refused = PullFrom(his + "/his/demo:1").status();
  EXPECT_EQ(refused.reason(), Reason::kBadRequest) << refused;
  EXPECT_EQ(Count("parts"), 0U);
  // Who brings it has it.
  for (const Descriptor& part : manifest_.parts()) {
    registry_.items["/v2/his/demo/blobs/sha256:" + part.digest] = registry_.items[BlobPath(part)];
  }
  ASSERT_TRUE(PullFrom(his + "/his/demo:1").ok());
  EXPECT_EQ(Count("origins"), 4U);
  EXPECT_EQ(Count("parts"), 0U);
}

TEST_F(PullerTest, P9_WhatARegistryBeganToSendIsNotContinuedForAnother) {
  const std::string his = "localhost:" + std::to_string(server_->port());
  std::string& body = registry_.items[BlobPath(*manifest_.kernel)].body;
  body = "not ";
  EXPECT_EQ(PullFrom(his + "/os/demo:1").status().reason(), Reason::kUnavailable);
  body = "the kernel";
  const size_t before = Asked("bytes=4- ");
  EXPECT_TRUE(Pull(":1").ok());
  EXPECT_EQ(Asked("bytes=4- "), before);
}

TEST_F(PullerTest, P9_CredentialsDoNotFollowARedirect) {
  registry_.user = "anna";
  registry_.moved_to = "https://localhost:" + std::to_string(server_->port());
  EXPECT_TRUE(Pull(":1", {.user = "anna", .password = "secret"}).ok());
  EXPECT_GT(Asked("/moved/"), 0U);
  for (const std::string& line : registry_.seen) {
    if (line.starts_with("/moved/")) EXPECT_TRUE(line.ends_with(" ")) << line;
  }
}

TEST_F(PullerTest, P9_RedirectsToOtherPlacesAreRefused) {
  registry_.moved_to = "http://localhost:" + std::to_string(server_->port());
  EXPECT_EQ(Pull(":1").status().reason(), Reason::kBadRequest);
  options_.registry.addresses.trusted = {host_};
  registry_.moved_to = "https://localhost:" + std::to_string(server_->port());
  EXPECT_EQ(Pull(":1").status().reason(), Reason::kForbidden);
  options_.registry.addresses.trusted.clear();
  EXPECT_EQ(Pull(":1").status().reason(), Reason::kForbidden);
}

TEST_F(PullerTest, ACertificateOfSomebodyElseIsNotTrusted) {
  net::TestTls other;
  options_.registry.tls = other.client();
  const Status refused = Pull(":1").status();
  EXPECT_TRUE(net::IsTrustFailure(refused) || refused.Is(Reason::kUnavailable)) << refused;
}

TEST_F(PullerTest, AnImageThatIsTooLargeIsRefusedBeforeAByteOfIt) {
  options_.image_bytes_max = 300'009;
  const Status refused = Pull(":1").status();
  EXPECT_EQ(refused.reason(), Reason::kBadRequest);
  EXPECT_EQ(Asked("/blobs/"), 0U);
  options_.image_bytes_max = 300'010;
  EXPECT_TRUE(Pull(":1").ok());
}

TEST_F(PullerTest, APackedDiskIsUnpackedWithinTheLimit) {
  const std::string content(2'000'000, 'd');
  Manifest packed;
  packed.root_disk = Put(std::string(MediaTypeOf(Part::kRootDisk)) + "+gzip", Gzipped(content));
  Tag("packed", kManifestType, ManifestText(packed));
  options_.image_bytes_max = 1'999'999;
  const Status bomb = Pull(":packed").status();
  EXPECT_EQ(bomb.reason(), Reason::kBadRequest);
  EXPECT_NE(bomb.message().find("image \"" + host_ + "/os/demo:packed\": "), std::string_view::npos)
      << bomb;
  EXPECT_NE(bomb.message().find("more than 1999999 bytes come out of it"), std::string_view::npos)
      << bomb;
  EXPECT_EQ(Count("unpacked") + Count("parts"), 0U);
  options_.image_bytes_max = 2'000'000;
  {
    const auto files = Pull(":packed");
    ASSERT_TRUE(files.ok()) << files.status();
    EXPECT_EQ(ReadWhole(files->disk->path), content);
  }
  // What came out counts in the cache, too.
  options_.cache_bytes_max = 1'000'000;
  ASSERT_TRUE(Pull(":1").ok());
  EXPECT_EQ(Count("unpacked"), 0U);
}

TEST_F(PullerTest, WhatWasFetchedLongestAgoMakesRoom) {
  ASSERT_TRUE(Pull(":1").ok());
  Manifest second;
  second.kernel = Put(MediaTypeOf(Part::kKernel), "another kernel");
  second.root_disk = manifest_.root_disk;
  Tag("2", kManifestType, ManifestText(second));
  options_.cache_bytes_max = 300'030;
  ASSERT_TRUE(Pull(":2").ok());
  const auto entries = layout().Entries();
  ASSERT_EQ(entries->size(), 1U);
  EXPECT_EQ(entries->front().tag, host_ + "/os/demo:2");
  EXPECT_EQ(Count("blobs/sha256"), 3U);
}

TEST_F(PullerTest, P6_6_NothingIsFetchedForWhichThereIsNoRoom) {
  room_ = 300'009;
  const Status refused = Pull(":1").status();
  EXPECT_EQ(refused.reason(), Reason::kTooManyRequests);
  EXPECT_TRUE(refused.message().contains("image \"" + host_ + "/os/demo:1\": no room")) << refused;
  EXPECT_EQ(Asked("/blobs/"), 0U);
  room_ = 300'010;
  ASSERT_TRUE(Pull(":1").ok());
  ASSERT_TRUE(Pull(":1").ok());
  EXPECT_EQ(claims_, std::vector<int64_t>{300'010}) << "what is there takes nothing more";
}

TEST_F(PullerTest, P6_6_OnlyWhatIsMissingIsClaimed) {
  registry_.items[BlobPath(*manifest_.root_disk)].body.resize(100'000);
  room_ = 1'000'000;
  EXPECT_EQ(Pull(":1").status().reason(), Reason::kUnavailable);
  registry_.items[BlobPath(*manifest_.root_disk)].body.resize(300'000, 'd');
  ASSERT_TRUE(Pull(":1").ok());
  EXPECT_EQ(claims_, (std::vector<int64_t>{300'010, 200'010}));
}

TEST_F(PullerTest, P6_6_OlderImagesMakeRoomBeforeANewOneIsRefused) {
  room_ = 300'030;
  ASSERT_TRUE(Pull(":1").ok());
  Manifest second;
  second.root_disk = Put(MediaTypeOf(Part::kRootDisk), std::string(300'020, 'e'));
  Tag("2", kManifestType, ManifestText(second));
  ASSERT_TRUE(Pull(":2").ok()) << "what is kept is less than what it needs, and some was free";
  auto entries = layout().Entries();
  ASSERT_EQ(entries->size(), 1U);
  EXPECT_EQ(entries->front().tag, host_ + "/os/demo:2");
  // No more than must.
  Manifest small;
  small.kernel = Put(MediaTypeOf(Part::kKernel), "kernel");
  Tag("small", kManifestType, ManifestText(small));
  ASSERT_TRUE(Pull(":small").ok());
  small.kernel = Put(MediaTypeOf(Part::kKernel), "another");
  Tag("another", kManifestType, ManifestText(small));
  ASSERT_TRUE(Pull(":another").ok());
  entries = layout().Entries();
  ASSERT_EQ(entries->size(), 2U);
  EXPECT_EQ(entries->front().tag, host_ + "/os/demo:small");
  // One that does not fit into all of it.
  second.root_disk = Put(MediaTypeOf(Part::kRootDisk), std::string(300'031, 'e'));
  Tag("2", kManifestType, ManifestText(second));
  EXPECT_EQ(Pull(":2").status().reason(), Reason::kTooManyRequests);
  EXPECT_EQ(Asked(pki::Sha256Hex(std::string(300'031, 'e'))), 0U);
}

TEST_F(PullerTest, P6_6_OlderImagesMakeRoomForWhatIsUnpacked) {
  room_ = 2'200'000;
  ASSERT_TRUE(Pull(":1").ok());
  Manifest packed;
  const std::string content(2'000'000, 'd');
  packed.root_disk = Put(std::string(MediaTypeOf(Part::kRootDisk)) + "+gzip", Gzipped(content));
  Tag("packed", kManifestType, ManifestText(packed));
  const auto files = Pull(":packed");
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_EQ(ReadWhole(files->disk->path), content);
  const auto entries = layout().Entries();
  ASSERT_EQ(entries->size(), 1U);
  EXPECT_EQ(entries->front().tag, host_ + "/os/demo:packed");
  EXPECT_EQ(Asked(packed.root_disk->digest), 1U) << "and it was not fetched again";
}

TEST_F(PullerTest, P6_6_NothingIsForgottenWhileItIsUsed) {
  room_ = 300'030;
  const auto used = Pull(":1");
  ASSERT_TRUE(used.ok()) << used.status();
  Manifest second;
  second.root_disk = Put(MediaTypeOf(Part::kRootDisk), std::string(300'020, 'e'));
  Tag("2", kManifestType, ManifestText(second));
  EXPECT_EQ(Pull(":2").status().reason(), Reason::kTooManyRequests);
  EXPECT_EQ(layout().Entries()->size(), 1U);
}

TEST_F(PullerTest, P6_6_APackedDiskHasRoomBeforeItIsUnpackedAndIsNotFetchedAgain) {
  const std::string content(2'000'000, 'd');
  Manifest packed;
  packed.root_disk = Put(std::string(MediaTypeOf(Part::kRootDisk)) + "+gzip", Gzipped(content));
  Tag("packed", kManifestType, ManifestText(packed));
  room_ = 1'000'000;
  EXPECT_EQ(Pull(":packed").status().reason(), Reason::kTooManyRequests);
  EXPECT_EQ(Count("unpacked") + Count("parts"), 0U);
  room_ = 3'000'000;
  ASSERT_TRUE(Pull(":packed").ok());
  EXPECT_EQ(Asked("/blobs/") - Asked("bytes="), 1U);
  EXPECT_EQ(claims_, (std::vector<int64_t>{packed.root_disk->size, 2'000'000}));
}

TEST_F(PullerTest, NothingMakesRoomWhileItIsUsed) {
  const auto first = Pull(":1");
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(TrimCache(layout(), 0, loop_.WallNow()).status().reason(), Reason::kConflict);
  EXPECT_EQ(ReadWhole(first->kernel->kernel), "the kernel");
}

}  // namespace
}  // namespace berth::image
