# SPDX-License-Identifier: Apache-2.0
"""Paths, methods, query parameters, selectors, and headers that ask for what is not served."""

import base64
import urllib.parse

from malformed import (BAD, CLASSES, CONFIGMAPS, GOOD, INVALID, JSON, KEPT, KEPT_MACHINE, NO_ACCEPT, NO_MEDIA, NO_METHOD,
                       NOT_FOUND, YAML, Case, requests)

CORE = '/api/v1'
COMPUTE = '/apis/compute.ironcore.dev/v1alpha1'

PATH_ROWS = [
    ('an unknown root', NOT_FOUND, '', 'GET', '/nobody'),
    ('an unknown version', NOT_FOUND, '', 'GET', '/api/v9/namespaces'),
    ('an unknown group', NOT_FOUND, '', 'GET', '/apis/nobody.example/v1/things'),
    ('a known group of an unknown version', NOT_FOUND, '', 'GET', '/apis/compute.ironcore.dev/v9/machines'),
    ('an unknown resource', NOT_FOUND, '', 'GET', f'{CORE}/namespaces/default/nobodies'),
    ('a resource in capitals', NOT_FOUND, '', 'GET', f'{CORE}/namespaces/default/ConfigMaps'),
    ('a resource in the singular', NOT_FOUND, '', 'GET', f'{CORE}/namespaces/default/configmap'),
    ('a resource of another group', NOT_FOUND, '', 'GET', f'{CORE}/namespaces/default/machines'),
    ('a cluster resource in a namespace', NOT_FOUND, '', 'GET',
     f'{COMPUTE}/namespaces/default/machineclasses/small'),
    ('an object that is not there', NOT_FOUND, 'nobody', 'GET', f'{CONFIGMAPS}/nobody'),
    ('a namespace that is not there', NOT_FOUND, '', 'GET', f'{CORE}/namespaces/nobody/configmaps/kept'),
    ('an unknown subresource', NOT_FOUND, '', 'GET', f'{KEPT}/nobody'),
    ('a subresource that the kind has not', NOT_FOUND, '', 'GET', f'{KEPT}/scale'),
    ('a path below a subresource', NOT_FOUND, '', 'GET', f'{KEPT_MACHINE}/status/more'),
    ('a deep path', NOT_FOUND, '', 'GET', CORE + '/a' * 200),
    ('a name in capitals', NOT_FOUND, '', 'GET', f'{CONFIGMAPS}/Kept'),
    ('an empty namespace', NOT_FOUND, '', 'GET', f'{CORE}/namespaces//configmaps'),
    ('two slashes first', NOT_FOUND, '', 'GET', '//api/v1/namespaces'),
    ('two slashes in the middle', NOT_FOUND, '', 'GET', '/api//v1/namespaces'),
    ('the parent folder', BAD, '', 'GET', f'{CORE}/namespaces/../namespaces'),
    ('the parent folder, escaped', BAD, '', 'GET', f'{CORE}/namespaces/%2e%2e/namespaces'),
    ('this folder', BAD, '', 'GET', f'{CORE}/./namespaces'),
    ('out of the root', BAD, '', 'GET', '/../../etc/passwd'),
    ('an escaped slash', BAD, '', 'GET', f'{CONFIGMAPS}/a%2fb'),
    ('an escaped zero byte', BAD, '', 'GET', f'{CONFIGMAPS}/a%00b'),
    ('an escaped line break', BAD, '', 'GET', f'{CONFIGMAPS}/a%0d%0ab'),
    ('an escape cut short', BAD, '', 'GET', f'{CONFIGMAPS}/a%2'),
    ('an escape of letters', BAD, '', 'GET', f'{CONFIGMAPS}/a%zz'),
    ('a percent sign last', BAD, '', 'GET', f'{CONFIGMAPS}/a%'),
    ('bad UTF-8, escaped', BAD, '', 'GET', f'{CONFIGMAPS}/%ff'),
    ('an overlong slash, escaped', BAD, '', 'GET', f'{CONFIGMAPS}/%c0%af'),
    ('a surrogate, escaped', BAD, '', 'GET', f'{CONFIGMAPS}/%ed%a0%80'),
    ('an old API of metrics', NOT_FOUND, '', 'GET', '/apis/metrics.k8s.io/v1beta1/nodes'),
    ('an unknown document of OpenAPI', NOT_FOUND, '', 'GET', '/openapi/v9'),
    ('an unknown group of OpenAPI', NOT_FOUND, '', 'GET', '/openapi/v3/apis/nobody/v1'),
    ('below a health check', NOT_FOUND, '', 'GET', '/livez/nobody/more'),
    ('a log that a server of Kubernetes has', NOT_FOUND, '', 'GET', '/logs/'),
]

METHOD_ROWS = [
    ('PUT of a collection', NO_METHOD, '', 'PUT', CONFIGMAPS),
    ('PATCH of a collection', NO_METHOD, '', 'PATCH', CONFIGMAPS),
    ('POST of an object', NO_METHOD, '', 'POST', KEPT),
    ('OPTIONS', NO_METHOD, '', 'OPTIONS', KEPT),
    ('TRACE', NO_METHOD, '', 'TRACE', KEPT),
    ('PROPFIND', NO_METHOD, '', 'PROPFIND', KEPT),
    ('LOCK', NO_METHOD, '', 'LOCK', KEPT),
    ('a method that is none', NO_METHOD, '', 'BREW', KEPT),
    ('a method in small letters', NO_METHOD, '', 'get', KEPT),
    ('a method of 1,000 letters', NO_METHOD, '', 'G' * 1_000, KEPT),
    ('POST of a version', NO_METHOD, '', 'POST', '/version'),
    ('DELETE of the root of groups', NO_METHOD, '', 'DELETE', '/apis'),
    ('PUT of a health check', NO_METHOD, '', 'PUT', '/livez'),
    ('POST of metrics', NO_METHOD, '', 'POST', '/metrics'),
    ('PATCH of OpenAPI', NO_METHOD, '', 'PATCH', '/openapi/v2'),
    ('DELETE of a status', NO_METHOD, '', 'DELETE', f'{KEPT_MACHINE}/status'),
    ('POST of a status', NO_METHOD, '', 'POST', f'{KEPT_MACHINE}/status'),
    ('GET of a review', NO_METHOD, '', 'GET', '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews'),
    ('GET of a binding', NO_METHOD, '', 'GET', f'{KEPT_MACHINE}/binding'),
    ('CONNECT of an object', NO_METHOD, '', 'CONNECT', KEPT),
]


def continue_of(text):
    """A token as the server writes them, of whatever somebody would like it to say."""
    return urllib.parse.quote(base64.urlsafe_b64encode(text.encode()))


QUERY_ROWS = [
    ('a limit that is a word', BAD, 'limit', 'GET', f'{CONFIGMAPS}?limit=many'),
    ('a negative limit', BAD, 'limit', 'GET', f'{CONFIGMAPS}?limit=-1'),
    ('a limit with a fraction', BAD, 'limit', 'GET', f'{CONFIGMAPS}?limit=1.5'),
    ('a limit beyond 64 bits', BAD, 'limit', 'GET', f'{CONFIGMAPS}?limit=99999999999999999999'),
    ('a limit in hex', BAD, 'limit', 'GET', f'{CONFIGMAPS}?limit=0x10'),
    ('a continue that is none', BAD, 'continue', 'GET', f'{CONFIGMAPS}?continue=nobody'),
    ('a continue that is no base64', BAD, 'continue', 'GET', f'{CONFIGMAPS}?continue=!!!'),
    ('a continue of another form', BAD, 'continue', 'GET', f'{CONFIGMAPS}?continue=e30'),
    ('a continue of 10,000 letters', BAD, 'continue', 'GET', f'{CONFIGMAPS}?continue=' + 'A' * 10_000),
    ('a continue of another namespace', BAD, 'namespace', 'GET',
     f'{CONFIGMAPS}?continue=' + continue_of('1:1:berth-system/a')),
    ('a continue of another namespace, of now', BAD, 'namespace', 'GET',
     f'{CONFIGMAPS}?continue=' + continue_of('1:0:berth-system/a')),
    ('a continue before every namespace', BAD, 'namespace', 'GET', f'{CONFIGMAPS}?continue=' + continue_of('1:1:a')),
    ('a continue behind every namespace', BAD, 'namespace', 'GET', f'{CONFIGMAPS}?continue=' + continue_of('1:1:~')),
    ('a continue of a longer namespace', BAD, 'namespace', 'GET',
     f'{CONFIGMAPS}?continue=' + continue_of('1:1:default-2/a')),
    ('a continue that climbs', BAD, 'namespace', 'GET', f'{CONFIGMAPS}?continue=' + continue_of('1:1:../secrets/a')),
    ('a continue of another version', BAD, 'continue', 'GET', f'{CONFIGMAPS}?continue=' + continue_of('2:1:default/a')),
    ('a continue of a negative revision', BAD, 'continue', 'GET',
     f'{CONFIGMAPS}?continue=' + continue_of('1:-1:default/a')),
    ('a continue without a key', BAD, 'continue', 'GET', f'{CONFIGMAPS}?continue=' + continue_of('1:1:')),
    ('a continue with a key of 5,000 letters', BAD, 'continue', 'GET',
     f'{CONFIGMAPS}?continue=' + continue_of('1:1:default/' + 'a' * 5_000)),
    ('a deletion that goes on in another namespace', BAD, 'namespace', 'DELETE',
     f'{CONFIGMAPS}?continue=' + continue_of('1:1:berth-system/a')),
    ('a deletion that goes on before its namespace', BAD, 'namespace', 'DELETE',
     f'{CONFIGMAPS}?continue=' + continue_of('1:1:a')),
    ('a version that is a word', BAD, 'resource version', 'GET', f'{CONFIGMAPS}?resourceVersion=now'),
    ('a negative version', BAD, 'resource version', 'GET', f'{CONFIGMAPS}?resourceVersion=-1'),
    ('a version beyond 64 bits', BAD, 'resource version', 'GET', f'{CONFIGMAPS}?resourceVersion=99999999999999999999'),
    ('a match that is none', INVALID, 'resourceVersionMatch', 'GET',
     f'{CONFIGMAPS}?resourceVersion=1&resourceVersionMatch=Roughly'),
    ('a match without a version', INVALID, 'resourceVersionMatch', 'GET', f'{CONFIGMAPS}?resourceVersionMatch=Exact'),
    ('an exact match of version 0', INVALID, 'resourceVersionMatch', 'GET',
     f'{CONFIGMAPS}?resourceVersion=0&resourceVersionMatch=Exact'),
    ('an object of a version that is a word', BAD, 'resource version', 'GET', f'{KEPT}?resourceVersion=now'),
    ('a watch that is neither', BAD, 'watch', 'GET', f'{CONFIGMAPS}?watch=perhaps'),
    ('a watch from a word', BAD, 'resource version', 'GET', f'{CONFIGMAPS}?watch=1&resourceVersion=now'),
    ('a watch with a timeout that is a word', BAD, 'timeoutSeconds', 'GET', f'{CONFIGMAPS}?watch=1&timeoutSeconds=long'),
    ('a watch with a negative timeout', BAD, 'timeoutSeconds', 'GET', f'{CONFIGMAPS}?watch=1&timeoutSeconds=-5'),
    ('a watch with bookmarks that are neither', BAD, 'allowWatchBookmarks', 'GET',
     f'{CONFIGMAPS}?watch=1&allowWatchBookmarks=perhaps'),
    ('a watch with initial events that are neither', BAD, 'sendInitialEvents', 'GET',
     f'{CONFIGMAPS}?watch=1&sendInitialEvents=perhaps&resourceVersionMatch=NotOlderThan'),
    ('a watch with initial events and no match', INVALID, 'resourceVersionMatch', 'GET',
     f'{CONFIGMAPS}?watch=1&sendInitialEvents=true'),
    ('a watch with a match and no initial events', INVALID, 'resourceVersionMatch', 'GET',
     f'{CONFIGMAPS}?watch=1&resourceVersionMatch=NotOlderThan'),
    ('objects that a table includes', BAD, 'includeObject', 'GET', f'{CONFIGMAPS}?includeObject=Half'),
    ('a bad escape in a name', BAD, '', 'GET', f'{CONFIGMAPS}?%zz=1'),
    ('a bad escape in a value', BAD, '', 'GET', f'{CONFIGMAPS}?limit=%2'),
    ('bad UTF-8 in a value', BAD, '', 'GET', f'{CONFIGMAPS}?labelSelector=%ff'),
    ('a zero byte in a selector', BAD, '', 'GET', f'{CONFIGMAPS}?labelSelector=a%00b'),
    ('thousands of parameters', BAD, '', 'GET', f'{CONFIGMAPS}?' + '&'.join(f'a{i}=1' for i in range(2_000))),
    ('a grace that is a word', BAD, 'gracePeriodSeconds', 'DELETE', f'{KEPT}?gracePeriodSeconds=soon'),
    ('a policy that is none', INVALID, 'propagationPolicy', 'DELETE', f'{KEPT}?propagationPolicy=Sideways'),
    ('orphans that are neither', BAD, 'orphanDependents', 'DELETE', f'{KEPT}?orphanDependents=some'),
    ('a deletion in a dry run of some', BAD, 'dryRun', 'DELETE', f'{KEPT}?dryRun=Some'),
    ('an empty dry run', BAD, 'dryRun', 'DELETE', f'{KEPT}?dryRun='),
    ('two dry runs', BAD, 'dryRun', 'DELETE', f'{KEPT}?dryRun=All&dryRun=Some'),
    ('a create with a validation that is none', BAD, 'fieldValidation', 'POST', f'{CONFIGMAPS}?fieldValidation=Loose'),
    ('a create in a dry run of some', BAD, 'dryRun', 'POST', f'{CONFIGMAPS}?dryRun=Some'),
    ('a create by a manager of 129 letters', INVALID, 'fieldManager', 'POST', f'{CONFIGMAPS}?fieldManager=' + 'm' * 129),
]

LABEL_SELECTORS = [
    ('a comma', ','), ('a last comma', 'a=b,'), ('a first comma', ',a=b'), ('two commas', 'a=b,,c=d'),
    ('an equals sign alone', '='), ('no key', '=b'), ('no key before !=', '!=b'), ('three equals signs', 'a===b'),
    ('two values', 'a=b=c'), ('a bad operator', 'a=!b'), ('an exclamation mark alone', '!'), ('two of them', '!!a'),
    ('one behind the key', 'a!'), ('a key with a blank', 'a b'), ('a key with a blank and a value', 'a b=c'),
    ('a value with a blank', 'a=b c'), ('a key with two slashes', 'a/b/c'), ('a key with an empty prefix', '/a'),
    ('a key with an empty name', 'a/'), ('a prefix in capitals', 'A.B/c=d'), ('a key of 64 letters', 'a' * 64),
    ('a value of 64 letters', 'a=' + 'b' * 64), ('a key of another script', '\u4e2d=a'),
    ('a value of another script', 'a=\u4e2d'), ('in without a list', 'a in'), ('in with a word', 'a in b'),
    ('an open list', 'a in (b'), ('a list that only closes', 'a in b)'),
    ('a list in brackets', 'a in [b]'), ('notin without a list', 'a notin'), ('a list in a list', 'a in ((b))'),
    ('a list behind a list', 'a in (b) (c)'), ('an unknown operator', 'a like b'), ('quotes', 'a="b"'),
    ('greater than a word', 'a>b'), ('less than nothing', 'a<'), ('greater or equal', 'a>=1'),
    ('a key that begins with a hyphen', '-a=b'), ('a value that ends in a hyphen', 'a=b-'), ('a percent sign', 'a=%'),
    ('a dollar sign', '$a=b'), ('a list of 64 KiB', 'a in (' + 'b,' * 33_000 + 'b)'), ('parentheses', '(a=b)'),
]

FIELD_SELECTORS = [
    ('a word', 'kept'), ('no field', '=kept'), ('an unknown field', 'spec.nobody=x'),
    ('a field of data', 'data.k=v'), ('a field in capitals', 'Metadata.Name=kept'), ('a label', 'metadata.labels=a'),
    ('greater than', 'metadata.name>a'), ('in a list', 'metadata.name in (a)'),
    ('three equals signs', 'metadata.name===a'), ('two values', 'metadata.name=a=b'),
    ('a backslash last', 'metadata.name=a\\'), ('an unknown escape', 'metadata.name=a\\b'),
    ('a field with an index', 'metadata.finalizers[0]=a'), ('an exclamation mark', '!metadata.name'),
    ('64 KiB', 'metadata.name=' + 'a' * 66_000), ('a field of another kind', 'involvedObject.name=a'),
]

ACCEPTS = [
    ('a page', 'text/html'), ('a picture', 'image/png'), ('YAML', 'application/yaml'),
    ('a table of another group', 'application/json;as=Table;v=v1;g=nobody.io'),
    ('a table of another version', 'application/json;as=Table;v=v9;g=meta.k8s.io'),
    ('a shape that is none', 'application/json;as=Circle;v=v1;g=meta.k8s.io'),
    ('protobuf alone, of a table', 'application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io'),
    ('words', 'everything please'), ('a slash', '/'), ('no subtype', 'application/'),
]

CONTENT_TYPES = [
    ('a page', 'text/html'), ('XML', 'application/xml'), ('a text', 'text/plain'), ('a form with files', 'multipart/form-data'),
    ('CBOR', 'application/cbor'), ('a patch', 'application/merge-patch+json'), ('a word', 'json'),
    ('a blank in it', 'application/ json'), ('a picture', 'image/png'), ('JSON of a dialect', 'application/hal+json'),
]

UNAUTHORIZED = (401, 'Unauthorized')
IDENTITY_ROWS = [
    ('a token that is none', UNAUTHORIZED, [('Authorization', 'Bearer nobody')]),
    ('an empty token', UNAUTHORIZED, [('Authorization', 'Bearer ')]),
    ('a token with a blank', UNAUTHORIZED, [('Authorization', 'Bearer a b')]),
    ('a token of 8,000 letters', UNAUTHORIZED, [('Authorization', 'Bearer ' + 'a' * 8_000)]),
    ('a token that is no UTF-8', UNAUTHORIZED, [('Authorization', b'Bearer \xff\xfe')]),
    ('a password', UNAUTHORIZED, [('Authorization', 'Basic YTpi')]),
    ('a scheme that is none', UNAUTHORIZED, [('Authorization', 'Nobody x')]),
    ('a scheme alone', UNAUTHORIZED, [('Authorization', 'Bearer')]),
    ('an empty authorization', UNAUTHORIZED, [('Authorization', '')]),
    ('two authorizations', BAD, [('Authorization', 'Bearer a'), ('Authorization', 'Bearer b')]),
    ('a good authorization, then a bad one', BAD, [('Authorization', GOOD), ('Authorization', 'Bearer b')]),
    ('a bad authorization, then a good one', BAD, [('Authorization', 'Bearer a'), ('authorization', GOOD)]),
    ('a good authorization, then an empty one', BAD, [('Authorization', GOOD), ('Authorization', '')]),
    ('another user by nobody', UNAUTHORIZED, [('Impersonate-User', 'admin')]),
]
IMPERSONATION_ROWS = [
    ('a group without a user', BAD, [('Impersonate-Group', 'system:masters')]),
    ('an extra without a user', BAD, [('Impersonate-Extra-reason', 'none')]),
    ('a UID without a user', BAD, [('Impersonate-Uid', 'x')]),
    ('an empty user', BAD, [('Impersonate-User', '')]),
    ('two users', BAD, [('Impersonate-User', 'a'), ('Impersonate-User', 'b')]),
]


def selectors(kind, parameter, rows):
    for name, text in rows:
        for path in (CONFIGMAPS, f'{CONFIGMAPS}?watch=true') if len(text) < 6 else (CONFIGMAPS,):
            where = ', in a watch' if 'watch' in path else ''
            target = path + ('&' if '?' in path else '?') + parameter + '=' + urllib.parse.quote(text)
            # What does not fit into a head is refused there.
            expected = BAD if len(target) < 60_000 else (431, 'RequestHeaderFieldsTooLarge')
            yield Case(kind, name + where, *expected, '', 'GET', target)


def cases():
    yield from requests('paths', PATH_ROWS)
    for name, (status, reason), says, method, path in METHOD_ROWS:
        yield Case('methods', name, status, reason, says, method, path)
    for name, (status, reason), says, method, path in QUERY_ROWS:
        body = b'{"metadata":{"name":"bad"}}' if method == 'POST' else None
        yield Case('queries', name, status, reason, says, method, path, (('Content-Type', JSON),) if body else (), body)
    yield from selectors('label selectors', 'labelSelector', LABEL_SELECTORS)
    yield from selectors('field selectors', 'fieldSelector', FIELD_SELECTORS)
    yield Case('label selectors', 'a deletion of what a bad one selects', *BAD, '', 'DELETE',
               f'{CONFIGMAPS}?labelSelector=a%20b')
    yield Case('field selectors', 'a deletion of what a bad one selects', *BAD, '', 'DELETE',
               f'{CONFIGMAPS}?fieldSelector=spec.nobody%3Dx')
    for name, accept in ACCEPTS:
        yield Case('accept', name, *NO_ACCEPT, '', 'GET', CLASSES, (('Accept', accept),))
    for name, form in CONTENT_TYPES:
        yield Case('content types', name, *NO_MEDIA, '', 'POST', CONFIGMAPS, (('Content-Type', form),),
                   b'{"metadata":{"name":"bad"}}')
    for first, second in ((JSON, YAML), (YAML, JSON)):
        yield Case('content types', f'{first}, then {second}', *BAD, 'Content-Type that differ', 'POST', CONFIGMAPS,
                   (('Content-Type', first), ('Content-Type', second)), b'{"metadata":{"name":"bad"}}')
    for name, (status, reason), headers in IDENTITY_ROWS:
        yield Case('identity', name, status, reason, '', 'GET', KEPT, tuple(headers), anonymous=True)
    for name, (status, reason), headers in IMPERSONATION_ROWS:
        yield Case('identity', name, status, reason, '', 'GET', KEPT, tuple(headers))
