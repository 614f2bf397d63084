#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every house rule refuses a sample of what it forbids, and leaves its neighbour alone."""

import unittest

import tidy

LINE = '// SPDX-License-Identifier: Apache-2.0\n'
TABLE = LINE.replace('//', '#') + '''
# berth_library(comment LAYER 9)
berth_library(base LAYER 0 LINK fmt)
berth_library(rt LAYER 1 DEPS base)
berth_library(net LAYER 2
  DEPS base rt LINK boost
  TEST_DEPS store)
berth_library(store LAYER 3 DEPS base)
berth_library(store/rocks LAYER 3 DEPS base store)
berth_library(apis/compute LAYER 3 DEPS base)
berth_library(apis LAYER 3 DEPS base apis/compute)
berth_library(cli LAYER 5 DEPS apis TEST_DEPS store)
'''


def findings(rule, files):
    return list(rule({tidy.TABLE: TABLE, **files}))


def one(rule, path, text):
    """Findings of a rule about one file."""
    return [finding for finding in findings(rule, {path: text}) if finding.path == path]


class Table(unittest.TestCase):
    def test_is_read_from_the_build(self):
        table = tidy.read_table(TABLE)
        self.assertEqual(list(table), ['base', 'rt', 'net', 'store', 'store/rocks', 'apis/compute', 'apis', 'cli'])
        self.assertEqual(table['net']['DEPS'], ['base', 'rt'])
        self.assertEqual(table['net']['TEST_DEPS'], ['store'])
        self.assertEqual(table['store/rocks']['LAYER'], ['3'])


class Layers(unittest.TestCase):
    HEADERS = {f'src/{name}': LINE for name in ('base/a.h', 'rt/a.h', 'net/a.h', 'store/a.h', 'store/rocks/a.h',
                                               'apis/compute/a.h')}

    def include(self, path, header):
        files = {**self.HEADERS, path: f'{LINE}#include "{header}"\n'}
        return [finding.message for finding in findings(tidy.check_layers, files)]

    def test_declared_dependencies_may_be_included(self):
        for path, header in (('src/rt/b.cc', 'base/a.h'), ('src/rt/b.cc', 'rt/a.h'), ('src/net/b.h', 'rt/a.h'),
                             ('src/store/rocks/b.cc', 'store/a.h'), ('src/net/b_test.cc', 'store/a.h')):
            self.assertEqual(self.include(path, header), [], (path, header))

    def test_everything_else_may_not(self):
        for path, header in (('src/base/b.cc', 'rt/a.h'), ('src/store/b.cc', 'net/a.h'), ('src/net/b.cc', 'store/a.h'),
                             ('src/store/b.cc', 'store/rocks/a.h'), ('src/store/b.cc', 'rt/a.h')):
            self.assertEqual(len(self.include(path, header)), 1, (path, header))

    def test_a_library_that_gathers_others_opens_them(self):
        self.assertEqual(self.include('src/cli/b.cc', 'apis/compute/a.h'), [])
        self.assertEqual(len(self.include('src/cli/b.cc', 'base/a.h')), 1)

    def test_a_header_that_only_tests_include_is_a_test(self):
        files = {**self.HEADERS, 'src/cli/world.h': '#include "store/a.h"\n', 'src/cli/b_test.cc': '#include "cli/world.h"\n'}
        self.assertEqual(findings(tidy.check_layers, files), [])
        # Also through another header that only tests include.
        files['src/cli/large_world.h'] = '#include "cli/world.h"\n'
        files['src/cli/large_test.cc'] = '#include "cli/large_world.h"\n'
        self.assertEqual(findings(tidy.check_layers, files), [])
        files['src/cli/b.cc'] = '#include "cli/world.h"\n'
        self.assertEqual(len(findings(tidy.check_layers, files)), 1)

    def test_a_folder_without_a_line_in_the_table_is_dead(self):
        self.assertEqual(len(self.include('src/lost/b.cc', 'base/a.h')), 1)

    def test_a_header_that_nobody_includes_is_dead(self):
        files = {'src/base/a.h': LINE, 'src/base/b.h': LINE, 'src/base/b.cc': LINE + '#include "base/b.h"\n'}
        self.assertEqual([f.path for f in findings(tidy.check_dead_headers, files)], ['src/base/a.h'])


class HeavyIncludes(unittest.TestCase):
    def test_are_refused_outside_their_door(self):
        samples = ['boost/beast/http.hpp', 'boost/asio/ip/tcp.hpp', 'boost/json.hpp', 'spdlog/spdlog.h', 'CLI/CLI.hpp',
                   'simdjson.h', 'yaml-cpp/yaml.h', 'rocksdb/db.h', 'prometheus/counter.h', 'grpcpp/grpcpp.h',
                   'berth/agent/v1/agent.pb.h', 'etcd/v3/rpc.pb.h', 'iri/machine/v1alpha1/api.grpc.pb.h', 'openssl/ssl.h', 'nghttp2/nghttp2.h', 'nlohmann/json.hpp',
                   'absl/strings/str_cat.h', 'fmt/format.h', 'iostream']
        hit = set()
        for header in samples:
            text = f'{LINE}#include <{header}>\n'
            self.assertEqual(len(one(tidy.check_heavy_includes, 'src/store/x.h', text)), 1, header)
            hit.add(next(i for i, rule in enumerate(tidy.HEAVY) if tidy.re.match(rule[0], header)))
        self.assertEqual(hit, set(range(len(tidy.HEAVY))), 'every line of the list has a sample')

    def test_pass_through_their_door(self):
        for path, header in (('src/net/http_server.cc', 'boost/beast.hpp'), ('src/rt/asio/asio_loop.cc', 'boost/asio.hpp'),
                             ('src/base/log.cc', 'spdlog/spdlog.h'), ('src/store/rocks/rocks_store.cc', 'rocksdb/db.h'),
                             ('src/meta/codec/decode.cc', 'simdjson.h'), ('src/base/log.h', 'fmt/core.h'),
                             ('src/base/x.cc', 'fmt/format.h')):
            self.assertEqual(one(tidy.check_heavy_includes, path, f'#include <{header}>\n'), [], (path, header))


class Banned(unittest.TestCase):
    # One line per Ban, in the order of the list: what it refuses in a header of store.
    SAMPLES = [
        ['auto t = std::chrono::steady_clock::now();', 'time(nullptr)', 'clock_gettime(CLOCK_REALTIME, &t);'],
        ['std::this_thread::sleep_for(d);', 'usleep(3);', '  sleep(1);', '::sleep(1);'],
        ['std::random_device d;', 'int n = rand();', 'std::rand()', 'std::mt19937 g;'],
        ['std::thread t(f);', 'std::jthread t;', 'std::async(f)'],
        ['worker.detach();'],
        ['std::mutex m;', 'std::lock_guard<M> l(m);'],
        ['getenv("HOME")', 'std::getenv("HOME")'],
        ['throw 1;'],
        ['std::regex r("a");'],
        ['using namespace std;'],
        ['absl::string_view v;'],
        ['std::cout << 1;', 'printf("x");', 'std::puts("x");', 'fprintf(stderr, "x");'],
        ['std::dynamic_pointer_cast<T>(p)', 'dynamic_cast<T*>(p)'],
        ['class A : std::enable_shared_from_this<A> {};'],
        ['system("ls");', 'popen("ls", "r")', 'std::system("ls")'],
        ['assert(x);'],
        ['abort();', 'std::exit(1);'],
        ['void ResetForTest();', 'FRIEND_TEST(A, B);', '#define private public'],
        ['int x;  // NOLINT'],
        ['volatile int x;'],
    ]

    def test_every_ban_refuses_its_samples(self):
        self.assertEqual(len(self.SAMPLES), len(tidy.BANS), 'every ban has a sample')
        for ban, samples in zip(tidy.BANS, self.SAMPLES):
            for sample in samples:
                found = one(tidy.check_banned, 'src/store/x.h', f'{LINE}{sample}\n')
                self.assertTrue(any(ban.instead in f.message and f.line == 2 for f in found), sample)

    def test_the_allow_list_has_reasons_and_is_honoured(self):
        for ban, samples in zip(tidy.BANS, self.SAMPLES):
            for pattern, reason in ban.allowed.items():
                self.assertTrue(reason)
                path = pattern.replace('*', 'x.cc')
                found = one(tidy.check_banned, path, f'{LINE}{samples[0]}\n')
                self.assertFalse(any(ban.instead in f.message for f in found), (pattern, samples[0]))

    def test_comments_and_strings_are_not_code(self):
        for text in ('// throw nothing\n', '/* std::thread\n */\n', 'auto s = "throw";\n', 'auto s = R"(assert(x))";\n',
                     "char c = '\"'; // throw\n", 'static_assert(true);\n', 'loop.Now();\n', 'runtime(nullptr);\n',
                     'const int big = 1\'000\'000; // assert(x)\n', 'snprintf(b, n, "x");\n', 'obj.exit(1);\n'):
            self.assertEqual(one(tidy.check_banned, 'src/store/x.cc', text), [], text)

    def test_tests_may_use_threads_but_not_sleep(self):
        self.assertEqual(one(tidy.check_banned, 'src/rt/x_test.cc', 'std::thread t;\n'), [])
        self.assertEqual(one(tidy.check_banned, 'src/store/x_test.cc', 'std::thread t;\n'), [])
        self.assertEqual(len(one(tidy.check_banned, 'src/store/x_test.cc', 'sleep_for(d);\n')), 1)


class CoAwait(unittest.TestCase):
    def test_braces_and_lambdas_inside_are_refused(self):
        for text in ('co_await F({.n = 4});', 'co_await F(Opt{1});', 'co_await F([x] { return x; });',
                     'co_await F(a,\n  {1, 2});', 'CO_TRY(auto v, co_await Run(Options{.a = 1}, b));'):
            self.assertEqual(len(one(tidy.check_co_await, 'src/rt/x.cc', text)), 1, text)

    def test_names_are_fine(self):
        for text in ('co_await F(std::move(options));', 'auto o = Opt{1}; co_await F(o);', 'co_await done;',
                     'co_await F(v[i]);', 'F(co_await CurrentContext{});', 'if (co_await G()) { x(); }', 'CO_TRY(auto v, co_await F(a, b));\n[x] {};'):
            self.assertEqual(one(tidy.check_co_await, 'src/rt/x.cc', text), [], text)
        self.assertEqual(one(tidy.check_co_await, 'src/rt/x_test.cc', 'co_await F([x] { return x; });'), [])


class Unordered(unittest.TestCase):
    HEADER = 'class A { std::unordered_map<std::string, std::vector<int>> index_; std::map<int, int> sorted_; };\n'

    def check(self, path, body):
        files = {'src/store/a.h': self.HEADER, 'src/net/a.h': self.HEADER, path: body}
        return [f for f in findings(tidy.check_unordered_iteration, files) if f.path == path]

    def test_iteration_is_refused_where_order_matters(self):
        for body in ('for (auto& [k, v] : index_) f(k);\n', 'for (auto& e : this->index_) f(e);\n',
                     'auto it = index_.begin();\n', 'std::unordered_set<int> s;\nfor (int i : s) f(i);\n'):
            self.assertEqual(len(self.check('src/store/a.cc', body)), 1, body)

    def test_looking_up_is_fine_and_so_are_other_folders(self):
        for body in ('index_.find(k);\n', 'for (auto& [k, v] : sorted_) f(k);\n', 'for (auto& v : index_[k]) f(v);\n'):
            self.assertEqual(self.check('src/store/a.cc', body), [], body)
        self.assertEqual(self.check('src/net/a.cc', 'for (auto& [k, v] : index_) f(k);\n'), [])


class Names(unittest.TestCase):
    def test_empty_words_are_refused(self):
        for text in ('class PoolManager {', 'struct StringUtils;', 'class StoreImpl final : public Store {',
                     'class [[nodiscard]] TaskHelper {', 'struct NodeInfo {', 'enum class PoolData {'):
            self.assertEqual(len(one(tidy.check_names, 'src/store/x.h', text)), 1, text)
        for path in ('src/store/store_util.cc', 'src/store/helpers.h', 'src/store/RocksStore.cc', 'src/common/a.cc',
                     'src/store/core/a.h'):
            self.assertEqual(len(one(tidy.check_names, path, LINE)), 1, path)

    def test_domain_words_are_fine(self):
        for text in ('class LeaseKeeper {', 'struct TypeInfo {', 'class Database {', 'struct Implicit {'):
            self.assertEqual(one(tidy.check_names, 'src/store/x.h', text), [], text)
        self.assertEqual(one(tidy.check_names, 'src/scheduler/core/a.h', LINE), [])


class Sizes(unittest.TestCase):
    def test_have_a_hard_limit(self):
        for path, limit in (('src/store/a.h', 400), ('src/store/a.cc', 800), ('src/store/a_test.cc', 1000)):
            self.assertEqual(one(tidy.check_sizes, path, '\n' * limit), [])
            self.assertEqual(len(one(tidy.check_sizes, path, '\n' * (limit + 1))), 1)

    def test_above_the_usual_size_a_file_is_listed(self):
        self.assertEqual(len(tidy.unusual_sizes({'src/a/a.cc': '\n' * 301, 'src/a/b.cc': '\n' * 300})), 1)


class Text(unittest.TestCase):
    def test_trailing_space_tabs_and_a_missing_newline_are_refused(self):
        for text in ('a \n', 'a\tb\n', 'a'):
            self.assertEqual(len(one(tidy.check_text, 'docs/x.md', text)), 1, repr(text))
        self.assertEqual(one(tidy.check_text, 'docs/x.md', 'a\n\nb\n'), [])
        self.assertEqual(one(tidy.check_text, 'LICENSE', 'a \n'), [])

    def test_the_license_line_comes_first(self):
        for path in ('src/a/a.cc', 'src/a/a.h', 'tools/x.py', 'cmake/x.cmake', 'proto/x.proto'):
            self.assertEqual(len(one(tidy.check_license_line, path, 'int x;\n')), 1, path)
            self.assertEqual(one(tidy.check_license_line, path, LINE), [])
        self.assertEqual(len(one(tidy.check_license_line, 'scripts/x', '#!/bin/sh\necho\n')), 1)
        self.assertEqual(one(tidy.check_license_line, 'scripts/x', '#!/bin/sh\n' + LINE), [])

    def test_work_left_over_needs_a_number(self):
        for word in ('TODO', 'FIXME', 'XXX', 'HACK'):
            self.assertEqual(len(one(tidy.check_todo, 'src/a/a.cc', f'// {word}: later\n')), 1, word)
        self.assertEqual(one(tidy.check_todo, 'src/a/a.cc', '// TODO(#12): later\n'), [])

    def test_paths_of_one_machine_do_not_belong_here(self):
        for folder in ('/wo' + 'rk/x', '/ro' + 'ot/x', '/ho' + 'me/ada/x'):
            self.assertEqual(len(one(tidy.check_machine_paths, 'docs/x.md', f'see {folder}\n')), 1, folder)
        self.assertEqual(one(tidy.check_machine_paths, 'docs/x.md', 'docs/wo' + 'rk/x and /var/lib\n'), [])
        self.assertEqual(len(one(tidy.check_machine_paths, 'src/a/a.cc', 'Open("/tm' + 'p/x");\n')), 1)


class Documents(unittest.TestCase):
    def test_have_one_title_on_the_first_line(self):
        for text in ('text\n', '\n# Late\n', '# One\n\n# Two\n'):
            self.assertEqual(len(one(tidy.check_markdown, 'docs/x.md', text)), 1, text)
        self.assertEqual(one(tidy.check_markdown, 'docs/x.md', '# One\n\n```sh\n# a comment\n```\n'), [])

    def test_have_no_dead_links(self):
        self.assertEqual(len(one(tidy.check_markdown, 'docs/x.md', '# T\n[a](gone.md)\n')), 1)
        files = {'docs/x.md': '# T\n[a](y.md#part) [b](../src) [c](https://example.org/) [d](#here) `[e](no)`\n',
                 'docs/y.md': '# T\n', 'src/a/a.h': LINE}
        self.assertEqual([f for f in findings(tidy.check_markdown, files)], [])

    def test_stay_short(self):
        self.assertEqual(len(one(tidy.check_markdown, 'README.md', '# T\n' + '\n' * 120)), 1)
        self.assertEqual(one(tidy.check_markdown, 'README.md', '# T\n' + '\n' * 100), [])

    def test_every_library_has_a_readme(self):
        files = {'src/rt/a.cc': LINE, 'src/net/a.cc': LINE, 'src/net/README.md': '# net\n'}
        self.assertEqual([f.path for f in findings(tidy.check_readmes, files)], ['src/rt'])

    def test_readmes_name_what_is_there(self):
        files = {'src/store/README.md': '# store\n`store.h`, `rocks/rocks_store.h`, `gone.h`\n', 'src/store/store.h': LINE,
                 'src/store/rocks/rocks_store.h': LINE}
        self.assertEqual([f.line for f in findings(tidy.check_readmes_are_true, files)], [2])
        files['src/store/README.md'] = '# store\n'
        self.assertEqual([f.path for f in findings(tidy.check_readmes_are_true, files)], ['src/store/README.md'])

    def test_every_decision_is_in_the_index_under_its_own_number(self):
        files = {'docs/adr/README.md': '[1](0001-a.md) [2](0001-b.md)', 'docs/adr/0001-a.md': '', 'docs/adr/0001-b.md': '',
                 'docs/adr/0002-c.md': '', 'docs/adr/later.md': ''}
        self.assertEqual([f.path for f in findings(tidy.check_decisions, files)],
                         ['docs/adr/0001-b.md', 'docs/adr/0002-c.md', 'docs/adr/later.md'])

    def test_changelog_fragments_say_what_they_are(self):
        self.assertEqual(one(tidy.check_changes, 'changes/feature-store.md', ''), [])
        self.assertEqual(len(one(tidy.check_changes, 'changes/store.md', '')), 1)


class Tree(unittest.TestCase):
    def test_every_rule_runs(self):
        self.assertEqual(len(tidy.RULES), len({rule.__name__ for rule in tidy.RULES}))
        rules = [name for name in vars(tidy) if name.startswith('check_') and name != 'check_tree']
        self.assertEqual(sorted(rules), sorted(rule.__name__ for rule in tidy.RULES))


if __name__ == '__main__':
    unittest.main()
