#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The house rules that a machine can check, as a test. STYLE.md says why they are there.

Usage: tools/tidy/tidy.py [--sizes]        (--sizes also lists files above the usual size)

A rule is a generator over the whole tree ({path: text}); it yields Findings. Exceptions stand in this file, each with
its reason; there is no way to switch a rule off from inside a source. Every rule has a sample that it must refuse in
tidy_test.py.
"""

import dataclasses
import fnmatch
import os
import re
import sys

import sources


@dataclasses.dataclass(frozen=True, order=True)
class Finding:
    path: str
    line: int
    rule: str
    message: str

    def __str__(self):
        return f'{self.path}:{self.line}: [{self.rule}] {self.message}'


# ---------------------------------------------------------------------------------------------------------------------
# Reading C++

TOKENS = re.compile(
    r'//[^\n]*|/\*.*?\*/'
    r'|R"(?P<delimiter>[^(\s]*)\(.*?\)(?P=delimiter)"'
    r'|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9A-Za-z_])'(?:\\.|[^'\\\n])*'",
    re.DOTALL)


def blank(match, keep_quotes=True):
    """Spaces for a comment or the inside of a literal, so that lines and columns stay."""
    text = match.group(0)
    spaces = re.sub(r'[^\n]', ' ', text)
    if text[0] == '/' or not keep_quotes:
        return spaces
    return '"' + spaces[1:-1] + '"'


def code_of(text):
    """C++ without comments and without the inside of literals."""
    return TOKENS.sub(blank, text)


def without_comments(text):
    return TOKENS.sub(lambda m: blank(m) if m.group(0)[0] == '/' else m.group(0), text)


def line_of(text, offset):
    return text.count('\n', 0, offset) + 1


def is_test(path):
    return path.endswith('_test.cc') or path.startswith(('test/', 'bench/', 'fuzz/', 'src/testing/')) or \
        '/conformance/' in path or os.path.basename(path).startswith('fake_')


def matches(path, patterns):
    return any(fnmatch.fnmatchcase(path, pattern) for pattern in patterns)


# ---------------------------------------------------------------------------------------------------------------------
# Layers: includes against the table in src/CMakeLists.txt

TABLE = 'src/CMakeLists.txt'
CALL = re.compile(r'^[ \t]*berth_(?:library|binary|program|executable)\(([^)]*)\)', re.MULTILINE)
KEYWORDS = ('LAYER', 'DEPS', 'LINK', 'TEST_DEPS', 'TEST_LINK')
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(["<])([^">]+)[">]', re.MULTILINE)


def read_table(text):
    """{folder: {keyword: [word...]}} from the berth_library() lines."""
    table = {}
    for call in CALL.finditer(re.sub(r'#[^\n]*', '', text)):
        words = call.group(1).split()
        arguments, keyword = {name: [] for name in KEYWORDS}, None
        for word in words[1:]:
            if word.isupper() and re.fullmatch(r'[A-Z_]+', word):
                keyword = word
            elif keyword in arguments:
                arguments[keyword].append(word)
        table[words[0]] = arguments
    return table


def library_of(path_below_src, table):
    """The library whose folder holds this file: folders are not nested libraries of each other by accident."""
    folder = os.path.dirname(path_below_src)
    while folder and folder not in table:
        folder = os.path.dirname(folder)
    return folder or None


def opened_by(dependency, table):
    """What a dependency stands for: itself and, if it only gathers the libraries below it (apis), those."""
    return {dependency, *(name for name in table.get(dependency, {}).get('DEPS', ())
                          if name.startswith(dependency + '/'))}


def headers_of_tests(tree):
    """Headers that only tests include, directly or through other such headers: fixtures."""
    includers = {}
    for path, text in tree.items():
        if sources.is_cpp(path):
            for include in INCLUDE.finditer(text):
                includers.setdefault('src/' + include.group(2), []).append(path)
    fixtures = set()
    while True:
        found = {header for header, paths in includers.items()
                 if all(is_test(path) or path in fixtures for path in paths)}
        if found == fixtures:
            return fixtures
        fixtures = found


def check_layers(tree):
    table = read_table(tree.get(TABLE, ''))
    fixtures = headers_of_tests(tree)
    for path, text in tree.items():
        if not path.startswith('src/') or not sources.is_cpp(path) or path.startswith('src/testing/'):
            continue
        owner = library_of(path[len('src/'):], table)
        if owner is None:
            yield Finding(path, 1, 'layers', f'no berth_library() in {TABLE} has this folder: dead file')
            continue
        declared = [*table[owner]['DEPS']]
        if is_test(path) or path in fixtures:
            declared += [*table[owner]['TEST_DEPS'], 'testing']
        allowed = {owner}.union(*(opened_by(dependency, table) for dependency in declared))
        for include in INCLUDE.finditer(text):
            if include.group(1) != '"' or f'src/{include.group(2)}' not in tree:
                continue  # a system header, or generated
            target = library_of(include.group(2), table) or include.group(2).split('/')[0]
            if target not in allowed:
                yield Finding(path, line_of(text, include.start()), 'layers',
                              f'{owner} does not declare {target} in its DEPS in {TABLE}')


def check_dead_headers(tree):
    included = {include.group(2) for path, text in tree.items() if sources.is_cpp(path)
                for include in INCLUDE.finditer(text)}
    for path in tree:
        if path.startswith('src/') and path.endswith('.h') and path[len('src/'):] not in included:
            yield Finding(path, 1, 'dead', 'nobody includes this header')


# ---------------------------------------------------------------------------------------------------------------------
# Heavy headers and their doors: who may include them. Never a header of ours outside the door's own folder.

HEAVY = [
    # (included, doors, reason)
    (r'boost/beast', ['src/net/*.cc'], '18 s per file; HTTP is net/http.h'),
    (r'boost/(asio|system)', ['src/rt/asio/*.cc', 'src/net/*.cc'], '5 s per file; the loop is rt/loop.h'),
    (r'boost/', ['src/net/*.cc', 'src/rt/asio/*.cc'], 'Boost is for asio and Beast only'),
    (r'spdlog/', ['src/base/log.cc'], '5 to 12 s per file; logging is base/log.h'),
    (r'CLI/', ['src/cli/parse.cc', 'src/app/parse.cc'], '10 s per file; flags are parsed in one place'),
    (r'simdjson', ['src/meta/*.cc'], '4 s per file; JSON is meta/codec'),
    (r'yaml-cpp/', ['src/meta/*.cc'], 'it throws; YAML is meta/codec'),
    (r'rocksdb/', ['src/store/rocks/*'], 'the store is store/store.h'),
    (r'prometheus/', ['src/base/metrics.cc'], 'metrics are base/metrics.h'),
    (r'grpc(pp)?/', ['src/net/*', 'src/*_service.cc', 'src/iri/grpc/*', 'src/app/scheduling_client_test.cc'],
     'the bridge is net/grpc_bridge.h'),
    (r'berth/(agent|poollet)/v1/.*\.pb\.h$', ['src/poollet/*.cc', 'src/gateway/*', 'src/apiserver/scheduling/*_test.cc', 'src/app/bench/bench_host.cc'],
     'the words of sessions and of the local record: only in the sources that speak them'),
    (r'etcd/v3/.*\.pb\.h$', ['src/store/etcd/*'], 'etcd is store/etcd'),
    (r'.*\.(grpc\.)?pb\.h$',
     ['src/net/*', 'src/*_service.cc', 'src/*_test.cc', 'src/iri/wire/*', 'src/iri/grpc/*', 'src/apiserver/scheduling/*'],
     'generated code stays behind services'),
    (r'openssl/', ['src/net/*.cc', 'src/pki/*.cc', 'src/pki/internal/*.h'],
     'TLS is net/tls.h, keys and certificates are pki/'),
    (r'nghttp2/', ['src/net/*.cc'], 'HTTP/2 lives in net'),
    (r'nlohmann/', [], '6 s per file; simdjson reads, our own writer writes'),
    (r'absl/', ['src/*.cc'], "Debian's Abseil does not accept std types: never in a header"),
    (r'fmt/(?!core\.h$)', ['src/*.cc'], 'in headers only fmt/core.h'),
    (r'(iostream|regex|future|thread)$', ['src/*.cc', 'src/rt/*'], 'not in a header; threads are made in rt'),
]


def check_heavy_includes(tree):
    for path, text in tree.items():
        if not sources.is_cpp(path) or not path.startswith('src/'):
            continue
        for include in INCLUDE.finditer(text):
            for header, doors, reason in HEAVY:
                if re.match(header, include.group(2)):
                    if not matches(path, doors):
                        yield Finding(path, line_of(text, include.start()), 'heavy include',
                                      f'{include.group(2)}: {reason}')
                    break


# ---------------------------------------------------------------------------------------------------------------------
# Banned tokens

EVERYWHERE, PRODUCT, HEADERS = 'everywhere', 'product', 'headers'


@dataclasses.dataclass(frozen=True)
class Ban:
    pattern: str
    instead: str
    where: str = PRODUCT
    # {path pattern: why it is right there}
    allowed: dict = dataclasses.field(default_factory=dict)


BANS = [
    Ban(r'\b(steady|system|high_resolution)_clock\s*::\s*now\b|\bclock_gettime\s*\(|\bgettimeofday\s*\(|\btime\s*\(\s*(0|NULL|nullptr|&)',
        'rt::Loop::Now() or WallNow(): time comes in through the loop', EVERYWHERE, {
            'src/base/clock.cc': 'the one reader of the real clock',
            'src/rt/asio/*': 'AsioLoop is where real time enters',
            'src/rt/blocking_pool.cc': 'times its jobs in thread CPU time',
            'src/iri/grpc/boot_clock.cc': 'translates deadlines between two processes of one host',
            'src/poollet/fencer/host_sleep.cc': 'asks how long the host slept, which no loop knows',
            'src/base/log.cc': 'a log line carries the time it was written',
            'bench/*': 'measures real time',
            'src/bench/*': 'measures real time',
        }),
    Ban(r'\bsleep_(for|until)\b|(?<![\w.>])(u|nano)?sleep\s*\(',
        'a timer of rt::Loop; tests wait with Eventually() or turn a SimLoop', EVERYWHERE, {
            'src/testing/eventually.cc': 'the one place where a test waits for a real process',
        }),
    Ban(r'\brandom_device\b|(?<![\w:.>])(std\s*::\s*)?s?rand\s*\(|\bmt19937|\bgetrandom\s*\(|\bgetentropy\s*\(',
        'rt::Loop::random(), or pki/entropy.h for secrets', EVERYWHERE, {
            'src/rt/asio/*': 'seeds the loop',
            'src/pki/*': 'secrets come from the kernel',
        }),
    Ban(r'\bstd\s*::\s*j?thread\b(?!\s*::\s*id)|\bpthread_create\b|\bstd\s*::\s*async\b',
        'rt: loops and BlockingPool own the threads', PRODUCT, {
            'src/rt/*': 'this is where threads are made',
            'src/store/rocks/*': 'the commit thread: an fsync in flight is the batch (docs/adr)',
            'src/app/*': 'maps loops to threads',
            'src/bench/*': 'load generators',
        }),
    Ban(r'\.\s*detach\s*\(', 'join what you start: rt::TaskScope', EVERYWHERE),
    Ban(r'\bstd\s*::\s*(recursive_|shared_|timed_)?mutex\b|\bstd\s*::\s*(lock_guard|unique_lock|scoped_lock)\b',
        'Mutex and MutexLock of base/mutex.h, which the compiler checks', PRODUCT, {
            'src/base/mutex.h': 'wraps it',
        }),
    Ban(r'\b(secure_)?getenv\s*\(', 'flags and variables are read in app/ and handed down', PRODUCT, {
        'src/app/*': 'the composition root reads the environment',
        'src/cli/*': 'KUBECONFIG, EDITOR and the like are part of what a command is given',
    }),
    Ban(r'\bthrow\b', 'a Status; exceptions of libraries end in their wrapper', EVERYWHERE),
    Ban(r'\bstd\s*::\s*(basic_)?regex\b', 'a small parser: std::regex recurses on its input', EVERYWHERE),
    Ban(r'\busing\s+namespace\b(?!\s+std\s*::\s*(string_view_|chrono_)?literals)', 'name what you use', HEADERS),
    Ban(r'\babsl\s*::', 'std types in our headers', HEADERS),
    Ban(r'\bstd\s*::\s*(cout|cerr|clog)\b|(?<![\w:.>])(std\s*::\s*)?(f?printf|puts)\s*\(',
        'LOG_* for logs, cli/ for what a person reads', PRODUCT, {
            'src/base/check.cc': 'the last words of a failing process',
            'src/base/log.cc': 'the log itself',
            'src/cli/*': 'commands talk to people',
            'src/app/*': 'start-up and usage messages',
            'src/bench/*': 'prints figures',
        }),
    Ban(r'\b(std\s*::\s*)?dynamic_pointer_cast\b|\bdynamic_cast\b', 'a virtual function or a variant', EVERYWHERE),
    Ban(r'\b(enable_)?shared_from_this\b', 'a TaskScope that owns the work', PRODUCT, {
        'src/rt/*': 'the primitives',
        'src/net/*': 'callbacks of asio and gRPC outlive the caller',
    }),
    Ban(r'(?<![\w:.>])(std\s*::\s*)?(system|popen)\s*\(', 'posix_spawn with an argument vector', EVERYWHERE),
    Ban(r'(?<![\w:.>])assert\s*\(', 'CHECK (on in release builds) or DCHECK', EVERYWHERE),
    Ban(r'(?<![\w:.>])(std\s*::\s*)?(abort|_?exit|quick_exit)\s*\(', 'CHECK for bugs, Status for the rest', PRODUCT, {
        'src/base/check.cc': 'CHECK ends here',
        'src/app/*': 'main decides the exit code',
    }),
    Ban(r'\bFRIEND_TEST\b|\b\w+ForTest(s|ing)?\s*\(|#\s*define\s+private\b',
        'test through the contract; inject faults with a decorator', EVERYWHERE),
    Ban(r'\bNOLINT(NEXTLINE|BEGIN)?\b(?!\()', 'NOLINT(the-check): and why', EVERYWHERE),
    Ban(r'\bvolatile\b', 'std::atomic', EVERYWHERE, {'bench/*': 'keeps the optimiser away', 'src/bench/*': 'the same'}),
]


def check_banned(tree):
    compiled = [(re.compile(ban.pattern), ban) for ban in BANS]
    for path, text in tree.items():
        if not sources.is_cpp(path):
            continue
        code = code_of(text)
        for pattern, ban in compiled:
            if ban.where == HEADERS and not path.endswith('.h'):
                continue
            if ban.where == PRODUCT and is_test(path):
                continue
            if matches(path, ban.allowed):
                continue
            haystack = text if 'NOLINT' in ban.pattern else code
            for found in pattern.finditer(haystack):
                yield Finding(path, line_of(haystack, found.start()), 'banned',
                              f'{" ".join(found.group(0).split())}: use {ban.instead}')


# ---------------------------------------------------------------------------------------------------------------------
# Traps of the language

CO_AWAIT = re.compile(
    r'co_await\b[^;]*?(?:[(,]\s*\{|\b[A-Z]\w*\s*\{\s*[^;}\s][^;]*\}\s*[,)]|\[[^\]\n]*\]\s*(?:\(|\{))')


def check_co_await(tree):
    for path, text in tree.items():
        if sources.is_cpp(path) and not is_test(path):
            code = code_of(text)
            for found in CO_AWAIT.finditer(code):
                yield Finding(path, line_of(code, found.end() - 1), 'co_await',
                              'a brace or lambda inside a co_await expression: give it a name first')


UNORDERED = re.compile(r'\bunordered_(?:multi)?(?:map|set)\s*<')
ORDER_MATTERS = ('src/store/', 'src/scheduler/core/')


def names_of_unordered(code):
    """Variables declared with an unordered container type."""
    for found in UNORDERED.finditer(code):
        depth, i = 1, found.end()
        while i < len(code) and depth:
            depth += {'<': 1, '>': -1}.get(code[i], 0)
            i += 1
        name = re.match(r'\s*&?\s*(\w+)', code[i:])
        if name:
            yield name.group(1)


def check_unordered_iteration(tree):
    for path, text in tree.items():
        if not sources.is_cpp(path) or not path.startswith(ORDER_MATTERS) or is_test(path):
            continue
        code = code_of(text)
        declared = code + code_of(tree.get(re.sub(r'\.cc$', '.h', path), ''))
        for name in sorted(set(names_of_unordered(declared))):
            iteration = re.compile(
                rf'\bfor\s*\([^;()]*:\s*[^;{{]*\b{name}\s*\)|\b{name}\s*(?:\.|->)\s*c?begin\s*\(')
            for found in iteration.finditer(code):
                yield Finding(path, line_of(code, found.start()), 'unordered',
                              f'iterates over {name}, whose order is not defined: order must not decide here')


# ---------------------------------------------------------------------------------------------------------------------
# Names

BAD_SUFFIX = re.compile(
    r'\b(?:class|struct|enum\s+class|enum|union)\s+(?:\[\[\w+\]\]\s*|[A-Z_]+\([^)]*\)\s*)*'
    r'(\w*(?:Manager|Helpers?|Utils?|Utilities|Impl|Info|Data|Handler2))\b')
ALLOWED_NAMES = {
    'TypeInfo': 'the description of a type, as in std::type_info',
    'KindInfo': 'the description of a kind, beside TypeInfo',
    'RequestInfo': "Kubernetes' own word for what a request asks for",
    'VersionInfo': "the answer of Kubernetes' /version",
}
BAD_FOLDERS = {'common', 'util', 'utils', 'misc', 'helper', 'helpers', 'core'}
ALLOWED_FOLDERS = {
    'src/apis/core': 'the name of an API group',
    'src/scheduler/core': 'means "pure part", and is policed',
}
BAD_FILE = re.compile(r'(^|_)(utils?|helpers?|misc|common|impl)\.(cc|h)$')


def check_names(tree):
    seen = set()
    for path, text in tree.items():
        if sources.is_cpp(path):
            code = code_of(text)
            for found in BAD_SUFFIX.finditer(code):
                if found.group(1) not in ALLOWED_NAMES:
                    yield Finding(path, line_of(code, found.start()), 'name',
                                  f'{found.group(1)}: say how it "manages" (keeper, cache, binder, reaper ...)')
            if BAD_FILE.search(os.path.basename(path)):
                yield Finding(path, 1, 'name', 'a drawer: name the one idea in the file')
            if not re.fullmatch(r'[a-z0-9_/]+\.(cc|h)', path):
                yield Finding(path, 1, 'name', 'files and folders are snake_case')
        folder = os.path.dirname(path)
        if path.startswith('src/') and folder not in seen:
            seen.add(folder)
            if os.path.basename(folder) in BAD_FOLDERS and folder not in ALLOWED_FOLDERS:
                yield Finding(path, 1, 'name', f'{folder}: a drawer, not a library')


# ---------------------------------------------------------------------------------------------------------------------
# Sizes

USUAL = {'test': 500, '.cc': 300, '.h': 150}
HARD = {'test': 1000, '.cc': 800, '.h': 400}


def size_class(path):
    return 'test' if path.endswith('_test.cc') else os.path.splitext(path)[1]


def check_sizes(tree):
    for path, text in tree.items():
        lines = text.count('\n')
        if sources.is_cpp(path) and lines > HARD[size_class(path)]:
            yield Finding(path, lines, 'size', f'{lines} lines, at most {HARD[size_class(path)]}: split it by verb '
                          'or extension point')


def unusual_sizes(tree):
    """Not findings: files worth a second look, largest first."""
    large = [(text.count('\n'), path) for path, text in tree.items()
             if sources.is_cpp(path) and text.count('\n') > USUAL[size_class(path)]]
    return [f'{path}: {lines} lines, usual are {USUAL[size_class(path)]}' for lines, path in sorted(large, reverse=True)]


# ---------------------------------------------------------------------------------------------------------------------
# Text

TEXT = ('.cc', '.h', '.py', '.md', '.txt', '.cmake', '.json', '.yaml', '.yml', '.proto', '.t', '.sh', '.supp',
        '.clang-tidy', '.clang-format', '.clangd', '.editorconfig', '.gitignore')
FOREIGN = {
    'LICENSE': 'the text of the Apache Software Foundation',
    '*/testdata/*': 'inputs of tests, kept byte for byte',
}


def is_text(path, text):
    return path.endswith(TEXT) or text.startswith('#!')


def check_text(tree):
    for path, text in tree.items():
        if not is_text(path, text) or matches(path, FOREIGN):
            continue
        for number, line in enumerate(text.split('\n'), 1):
            if line != line.rstrip():
                yield Finding(path, number, 'text', 'trailing space')
            if '\t' in line and not path.endswith('.t'):
                yield Finding(path, number, 'text', 'tab')
        if text and not text.endswith('\n'):
            yield Finding(path, text.count('\n') + 1, 'text', 'no newline at the end')


SPDX = 'SPDX-License-Identifier: Apache-2.0'


def check_license_line(tree):
    for path, text in tree.items():
        wanted = path.endswith(('.cc', '.h', '.py', '.cmake', '.proto', '.sh', 'CMakeLists.txt')) or \
            text.startswith('#!')
        if wanted and not matches(path, FOREIGN) and SPDX not in '\n'.join(text.split('\n', 2)[:2]):
            yield Finding(path, 1, 'license', f'the first line (after #!) says {SPDX}')


TODO = re.compile(r'\b(TODO|FIXME|XXX|HACK)\b(?!\(#\d+\))')
TODO_FILES = ('.cc', '.h', '.py', '.sh', '.cmake', '.proto', 'CMakeLists.txt')


def check_todo(tree):
    for path, text in tree.items():
        if (path.endswith(TODO_FILES) or text.startswith('#!')) and not path.startswith('tools/tidy/'):
            for found in TODO.finditer(text):
                yield Finding(path, line_of(text, found.start()), 'todo',
                              f'{found.group(1)} without an issue number: {found.group(1)}(#12)')


# Paths of one machine. The parts are joined here so that this file does not contain them.
MACHINE = re.compile(r'(?<![\w.])(?:/wo' r'rk/|/ro' r'ot/|/ho' r'me/\w+/)')
FIXED_TMP = re.compile(r'"/tm' r'p/')


def check_machine_paths(tree):
    for path, text in tree.items():
        if not is_text(path, text) or matches(path, FOREIGN):
            continue
        for found in MACHINE.finditer(text):
            yield Finding(path, line_of(text, found.start()), 'machine', f'{found.group(0)}: a path of one machine')
        if sources.is_cpp(path):
            for found in FIXED_TMP.finditer(without_comments(text)):
                yield Finding(path, line_of(text, found.start()), 'machine',
                              'a fixed path in the temporary folder can be guessed: make a folder')


# ---------------------------------------------------------------------------------------------------------------------
# Documents

LINK = re.compile(r'\[[^\]\n]*\]\(([^)\s]+)\)')
FENCE = re.compile(r'^( *)(```|~~~).*?^\1\2 *$', re.DOTALL | re.MULTILINE)
LONGEST = {'README.md': 120, 'STYLE.md': 200, 'src/*/README.md': 60}
FRAGMENT = re.compile(r'changes/(feature|fix|break|perf)-[a-z0-9-]+\.md')


def check_markdown(tree):
    folders = {os.path.dirname(path) for path in tree}
    folders |= {parent for folder in list(folders) for parent in parents(folder)}
    for path, text in tree.items():
        if not path.endswith('.md') or matches(path, FOREIGN):
            continue
        prose = FENCE.sub(lambda m: re.sub(r'[^\n]', ' ', m.group(0)), text)
        titles = [found.start() for found in re.finditer(r'^# ', prose, re.MULTILINE)]
        if len(titles) != 1 or titles[0] != 0:
            if not path.startswith('changes/') or path == 'changes/README.md':
                yield Finding(path, 1, 'markdown', f'{len(titles)} titles: the first line, and no other, is "# Title"')
        for link in LINK.finditer(re.sub(r'`[^`\n]*`', lambda m: ' ' * len(m.group(0)), prose)):
            target = link.group(1).split('#')[0]
            if not target or re.match(r'[a-z]+:', target):
                continue
            where = os.path.normpath(os.path.join(os.path.dirname(path), target))
            if where not in tree and where not in folders:
                yield Finding(path, line_of(prose, link.start()), 'markdown', f'dead link: {target}')
        for pattern, limit in LONGEST.items():
            if fnmatch.fnmatchcase(path, pattern) and text.count('\n') > limit:
                yield Finding(path, limit + 1, 'markdown', f'{text.count(chr(10))} lines, at most {limit}')


def parents(folder):
    while folder:
        folder = os.path.dirname(folder)
        yield folder


def check_readmes(tree):
    table = read_table(tree.get(TABLE, ''))
    for folder in table:
        if os.path.basename(folder) == 'conformance':
            continue  # the contract of the library above it, which explains it
        # A folder that is declared but still empty has nothing to explain.
        if any(path.startswith(f'src/{folder}/') for path in tree) and f'src/{folder}/README.md' not in tree:
            yield Finding(f'src/{folder}', 1, 'readme', 'a library folder has a README.md of one screen')


NAMED_SOURCE = re.compile(r'`([a-z_0-9/]+\.(?:h|cc|proto|py))`')


def check_readmes_are_true(tree):
    """What a folder's README names is there, and the libraries below it are named."""
    table = read_table(tree.get(TABLE, ''))
    ends = {path[at + 1:] for path in tree for at, letter in enumerate(path) if letter == '/'} | set(tree)
    for path, text in tree.items():
        if path != 'ARCHITECTURE.md' and not (path.startswith('src/') and path.endswith('/README.md')):
            continue
        for name in NAMED_SOURCE.finditer(text):
            if name.group(1) not in ends:
                yield Finding(path, line_of(text, name.start()), 'readme', f'there is no {name.group(1)}')
    for folder in table:
        above, name = os.path.split(folder)
        readme = f'src/{above}/README.md'
        if readme in tree and name not in ('conformance', 'testing') and not re.search(rf'\b{name}\b', tree[readme]):
            yield Finding(readme, 1, 'readme', f'does not name {name}/')


def check_decisions(tree):
    index, numbers = tree.get('docs/adr/README.md', ''), {}
    for path in sorted(tree):
        if not path.startswith('docs/adr/') or path == 'docs/adr/README.md':
            continue
        name = os.path.basename(path)
        if not re.fullmatch(r'\d{4}-[a-z0-9-]+\.md', name):
            yield Finding(path, 1, 'adr', 'a decision is called NNNN-what-it-is.md')
        elif f']({name})' not in index:
            yield Finding(path, 1, 'adr', 'not in the index docs/adr/README.md')
        elif name[:4] in numbers:
            yield Finding(path, 1, 'adr', f'has the number of {numbers[name[:4]]}')
        numbers.setdefault(name[:4], path)


def check_changes(tree):
    for path in tree:
        if path.startswith('changes/') and path != 'changes/README.md' and not FRAGMENT.fullmatch(path):
            yield Finding(path, 1, 'changes', 'a fragment is called feature-, fix-, break- or perf-NAME.md')


RULES = [
    check_layers, check_dead_headers, check_heavy_includes, check_banned, check_co_await, check_unordered_iteration,
    check_names, check_sizes, check_text, check_license_line, check_todo, check_machine_paths, check_markdown,
    check_readmes, check_readmes_are_true, check_decisions, check_changes,
]


def check_tree(tree):
    return sorted(finding for rule in RULES for finding in rule(tree))


def read_tree(root=sources.ROOT):
    tree = {}
    for path in sources.repository_files(root):
        full = os.path.join(root, path)
        if os.path.islink(full):
            continue
        with open(full, 'rb') as file:
            content = file.read()
        if b'\0' not in content:
            tree[path] = content.decode(errors='replace')
    return tree


def main():
    tree = read_tree()
    if '--sizes' in sys.argv[1:]:
        print('\n'.join(unusual_sizes(tree)))
    findings = check_tree(tree)
    for finding in findings:
        print(finding)
    print(f'{len(tree)} files, {len(findings)} findings, {len(unusual_sizes(tree))} larger than usual (--sizes)')
    return 1 if findings else 0


if __name__ == '__main__':
    sys.exit(main())
