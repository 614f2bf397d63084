// SPDX-License-Identifier: Apache-2.0
// Certificate requests for tests, made with `openssl req -new -newkey ec`; nobody has their keys.
#pragma once

#include <string_view>

namespace berth::client::testing {

// CN=jane, O=devs, O=ops
inline constexpr std::string_view kJane = R"(-----BEGIN CERTIFICATE REQUEST-----
MIHnMIGOAgEAMCwxDTALBgNVBAoMBGRldnMxDDAKBgNVBAoMA29wczENMAsGA1UE
AwwEamFuZTBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABEJgTUebZIOxgrf98OJ9
B/rQhPDgqKDScvgVgxTyPsKaVuzDBASDqK9T8+3q/PqMu4/DSynvNAiQVcfM5kvW
YHOgADAKBggqhkjOPQQDAgNIADBFAiBbWy/941FZukns7v6MxiRIYuWi05B+U9Y/
J7HbT7qKbwIhAPz2gn/v3sDYfJl7O+8XsOmTKAKjM7zLWRlzuZDODj5c
-----END CERTIFICATE REQUEST-----
)";
// CN=jane, O=system:masters
inline constexpr std::string_view kMasters = R"(-----BEGIN CERTIFICATE REQUEST-----
MIHjMIGKAgEAMCgxFzAVBgNVBAoMDnN5c3RlbTptYXN0ZXJzMQ0wCwYDVQQDDARq
YW5lMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEXqZRXvQMCmcVmglRI5ZwBDpG
OIL9FSa4Nr5HltxqfIWW7FDCtx0t1wymGep14b95gly9ASXmZfeXcjqrpV3Sd6AA
MAoGCCqGSM49BAMCA0gAMEUCIDCiies3vSf49Vvx7leADTLHmjQbe+0YwqHrm5Du
9FQpAiEA/utwtE3BoYNiZe1sxGfUxKM68ycvtlt/FoxIhg71yUU=
-----END CERTIFICATE REQUEST-----
)";
// CN=system:admin
inline constexpr std::string_view kSystem = R"(-----BEGIN CERTIFICATE REQUEST-----
MIHQMHkCAQAwFzEVMBMGA1UEAwwMc3lzdGVtOmFkbWluMFkwEwYHKoZIzj0CAQYI
KoZIzj0DAQcDQgAEE4qdSAvvhuXNnZ0E0GgoQL+0x0fXRoI9EcD4TaDYGSn7iOYY
xM+DQDC/wT0ivR+3+winUu0ZubikZ4ACHQ85x6AAMAoGCCqGSM49BAMCA0cAMEQC
IH363zjA91VEHcqgQrvb3krAyQsI6yjgLZn3CrWk2k1JAiAtaGqw8hyu+io88S2y
rDo56pGIDLjXinXgGcKHLFyBtA==
-----END CERTIFICATE REQUEST-----
)";
// CN=berth:host:a, O=berth:hosts
inline constexpr std::string_view kHost = R"(-----BEGIN CERTIFICATE REQUEST-----
MIHoMIGPAgEAMC0xFDASBgNVBAoMC2JlcnRoOmhvc3RzMRUwEwYDVQQDDAxiZXJ0
aDpob3N0OmEwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAARVfJ8FcE6TMHak5EpG
mDEZ1R/SWc08MxPSTZLC57NTV3AxrobtdTJIOvRNxTiH5Zuk+JJPr+pfzLUiieu9
CemToAAwCgYIKoZIzj0EAwIDSAAwRQIgP17rIz2YPqdolUrP10ZlCg+beMnlmdBl
J7rZNSnTS9YCIQC5lWnfTl5yBdHmoONmQwleqjHwzUPMgFojGTBS5pd2CA==
-----END CERTIFICATE REQUEST-----
)";
// O=devs
inline constexpr std::string_view kNobody = R"(-----BEGIN CERTIFICATE REQUEST-----
MIHKMHECAQAwDzENMAsGA1UECgwEZGV2czBZMBMGByqGSM49AgEGCCqGSM49AwEH
A0IABAqikFasXa0jtZJUD7AvoYt1raWBGANrEnzSjZuhhBjKm6ku9KwPl69Qj9VY
UFSfXpzenMihM6mTHdN9ggkvZEygADAKBggqhkjOPQQDAgNJADBGAiEAlnpARm2x
aPWau5vdmYRnkGDre9B0MhTan18C5jmvt5QCIQC3C4lMo27gbBR/CwVWjdVcJr+7
CK7rlF8uHpSciKW4nw==
-----END CERTIFICATE REQUEST-----
)";
// CN=a, CN=b
inline constexpr std::string_view kTwoNames = R"(-----BEGIN CERTIFICATE REQUEST-----
MIHTMHoCAQAwGDEKMAgGA1UEAwwBYTEKMAgGA1UEAwwBYjBZMBMGByqGSM49AgEG
CCqGSM49AwEHA0IABP6b+2bL4Q/QIza29xoannD64gPxDHNO/rKtFZRYarfPEBi0
4lc100/csdsuFtLXePKsZJWbN8gTEmDGiwHzi0+gADAKBggqhkjOPQQDAgNJADBG
AiEAwZdXPnRkQtUy6AyBXsdFYUJrDsn82sXFGCMXuMzM63QCIQDJzjlGzMjQBJje
kUqYFn6pawEKJEqw2gtB8Z+p5LESnw==
-----END CERTIFICATE REQUEST-----
)";
// CN=jane, DNS:server
inline constexpr std::string_view kServer = R"(-----BEGIN CERTIFICATE REQUEST-----
MIHvMIGVAgEAMA8xDTALBgNVBAMMBGphbmUwWTATBgcqhkjOPQIBBggqhkjOPQMB
BwNCAAQfX9KSJfFe5+aIul1TgZ1SZi7xNGhpbREc9j0wPLjeOZqLnLlhDkkbIcxr
mvgGSCYUGDDgEsQtDKpAeFW1qnd+oCQwIgYJKoZIhvcNAQkOMRUwEzARBgNVHREE
CjAIggZzZXJ2ZXIwCgYIKoZIzj0EAwIDSQAwRgIhAIgbW/uw3eiJzuEJvmods8+m
FxOtXKrsyATE8NHvdbn8AiEA9y2DvGdHkxcUkTwJUUp3ZnDSs5BNcuMW1J5Zi5bS
A1w=
-----END CERTIFICATE REQUEST-----
)";
// CN=compute.ironcore.dev:system:machinepool:alpha, O=compute.ironcore.dev:system:machinepools
inline constexpr std::string_view kPool = R"(-----BEGIN CERTIFICATE REQUEST-----
MIIBJjCBzQIBADBrMTEwLwYDVQQKDChjb21wdXRlLmlyb25jb3JlLmRldjpzeXN0
ZW06bWFjaGluZXBvb2xzMTYwNAYDVQQDDC1jb21wdXRlLmlyb25jb3JlLmRldjpz
eXN0ZW06bWFjaGluZXBvb2w6YWxwaGEwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNC
AASHMgGnSvbX5+vpJhbb0CeqUGNYlSFzH6a4Jyur8WsB6fT+fPOQsJe1cyFBvrWT
5sshPaVeWkBqod3efbzObJo4oAAwCgYIKoZIzj0EAwIDSAAwRQIgCxMMptuWRYsk
KrEhcO1s+0VQzlDkxY4sILN88vcHoiMCIQCXYBR8LQYuky+ykgP9HYx+lzN7/tht
vuWOCZJSR19GrQ==
-----END CERTIFICATE REQUEST-----
)";
// The same with O=devs
inline constexpr std::string_view kPoolAndMore = R"(-----BEGIN CERTIFICATE REQUEST-----
MIIBNTCB3AIBADB6MTEwLwYDVQQKDChjb21wdXRlLmlyb25jb3JlLmRldjpzeXN0
ZW06bWFjaGluZXBvb2xzMQ0wCwYDVQQKDARkZXZzMTYwNAYDVQQDDC1jb21wdXRl
Lmlyb25jb3JlLmRldjpzeXN0ZW06bWFjaGluZXBvb2w6YWxwaGEwWTATBgcqhkjO
PQIBBggqhkjOPQMBBwNCAARE9rFGNBe+op5//AmkwY/jTSa1IQCq+ZFnoLo7ejFE
MUVs4UOgXLqU0g67U+duIN/Ty1hOO791FDVP0FSU5b1woAAwCgYIKoZIzj0EAwID
SAAwRQIgBVhC8zsHRY/4sAkQCmDhid7Ncbi9Pd+cJEtOMIgWeiACIQDRjOv4hvB8
OLzjkfpnz+QpQTRDfjYsdm3qXEWiBYI+2Q==
-----END CERTIFICATE REQUEST-----
)";
// The same with O=storage.ironcore.dev:system:volumepools
inline constexpr std::string_view kPoolOfAnotherGroup = R"(-----BEGIN CERTIFICATE REQUEST-----
MIIBJTCBzAIBADBqMTAwLgYDVQQKDCdzdG9yYWdlLmlyb25jb3JlLmRldjpzeXN0
ZW06dm9sdW1lcG9vbHMxNjA0BgNVBAMMLWNvbXB1dGUuaXJvbmNvcmUuZGV2OnN5
c3RlbTptYWNoaW5lcG9vbDphbHBoYTBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IA
BG1ij8f5gU7KbY3u2CRHLtbM9d7tWuvY0PMlV1cbtvcgnP5EnQZ42ZP5J16BJySn
7k3fZ1iO6EjhBBva/b0WK2ygADAKBggqhkjOPQQDAgNIADBFAiEA/2MOMjQHJdOt
Imrd/93zuHQJICyRxuFXlXSJa3vw79ICIAsVgpz3Bm7HyeM5T5XIPDZgaRyRVEA5
dCHugNg/gLKL
-----END CERTIFICATE REQUEST-----
)";
// CN=compute.example.org:system:machinepool:alpha, O=compute.example.org:system:machinepools
inline constexpr std::string_view kPoolOfAnotherDomain = R"(-----BEGIN CERTIFICATE REQUEST-----
MIIBJDCBywIBADBpMTAwLgYDVQQKDCdjb21wdXRlLmV4YW1wbGUub3JnOnN5c3Rl
bTptYWNoaW5lcG9vbHMxNTAzBgNVBAMMLGNvbXB1dGUuZXhhbXBsZS5vcmc6c3lz
dGVtOm1hY2hpbmVwb29sOmFscGhhMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE
fzASthxdZkczkfB2HYDExbwrLN/g031t4dG+HzY69kvr7NqFVhJdONUYLVlDmNj7
iGnBgdQARWiWOR3JvV75r6AAMAoGCCqGSM49BAMCA0gAMEUCIE0MU/h7D4d4kmpA
I8WV5kYWXEZYwTo9z+dx9U4XoQN4AiEA1XYrwi45djNqpbwx9V9mGg/puJMYxbH8
c1++H2bI7dU=
-----END CERTIFICATE REQUEST-----
)";
// CN=storage.ironcore.dev:system:volumepool:disks, O=storage.ironcore.dev:system:volumepools
inline constexpr std::string_view kVolumePool = R"(-----BEGIN CERTIFICATE REQUEST-----
MIIBJDCBywIBADBpMTAwLgYDVQQKDCdzdG9yYWdlLmlyb25jb3JlLmRldjpzeXN0
ZW06dm9sdW1lcG9vbHMxNTAzBgNVBAMMLHN0b3JhZ2UuaXJvbmNvcmUuZGV2OnN5
c3RlbTp2b2x1bWVwb29sOmRpc2tzMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE
F73wOB6a1Gclz2QGDgzZ2djk2topQPtJtk5Pg+MJP4qdXsBjPd1JgCsMUWG6Tljx
7ycNWxwQHjkZ/gMaZqJR56AAMAoGCCqGSM49BAMCA0gAMEUCIQCxjTANLaTGfXTC
fKffSqbEy+IaXgzE99MwT2389/JAigIgH4A04/PvZB3b2YT0iIbLPTem90V7xsye
S62WDF0LFKw=
-----END CERTIFICATE REQUEST-----
)";

}  // namespace berth::client::testing
