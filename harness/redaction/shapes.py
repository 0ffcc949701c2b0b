"""The shapes of secrets: credentials with a vendor's prefix, or in a typical context.

INVARIANT: each pattern passes over a text in linear time. Its repetitions are bounded, or possessive with nothing
required after them; a test runs each pattern over long hostile texts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache, lru_cache

from harness.record import Record
from harness.redaction.marks import MARK, OPENING, Span
from harness.redaction.secret_checks import (
    has_digit,
    has_token_header,
    is_apart,
    is_bare_chance,
    is_basic_pair,
    is_chance,
    is_dense,
    is_filler,
    is_long_chance,
    is_marked_password,
    is_mixed_password,
    is_password,
    segment_before,
    stands_for_number,
)

WORD = "PRIVATE KEY"
"""Word that occurs in every text with a private key."""
LONGEST = 65_536
"""Maximum length of a key block, in characters. An RSA key of 16,384 bits takes 13,000, and quoting adds some."""
_FEWEST = 24
"""Minimum number of base64 characters in a key block. Code often contains only the first line of a block."""

_BEGIN = r"-----BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----"
END = "-----END "
"""Start of the last line of a block."""
# Text between the lines of a quoted block: blanks, quotes, `+` and `,` of code, `>` of mail, line numbers of listings,
# escapes of JSON. Possessive, so that no text is read twice.
_BETWEEN = r"""(?:\\{1,8}+[nrtu]|[\s"'`+,>|.:()\\-])*+"""
_HEADER = r"(?:Proc-Type|DEK-Info|Comment|Version|Hash): [^\n\\]{0,80}+"
_NUMBER = r"[0-9]{1,6}[\t|:]"
_LAST = r"""[A-Za-z0-9+/]{4,}+={0,2}+(?=\s*\Z|[\s\\"']*-----END|\s*\n)"""
_LINES = rf"(?:{_BETWEEN}(?:{_HEADER}|{_NUMBER}|[A-Za-z0-9+/=]{{32,}}+))*+(?:{_BETWEEN}{_LAST})?+"
_EDGE = r"""(?:\\{1,8}+[nr]|[\s"'+,])*+"""
_RUN = rf"[A-Za-z0-9+/]{{{_FEWEST}}}"
_NO_KEY = r"\\{1,8}+[nrt]|\\u[0-9a-fA-F]{4}|(?:Proc-Type|DEK-Info): [^\n\\]*|[^A-Za-z0-9+/=]"


def _key_blocks(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield the start, end and base64 of each private key in `text`, without its first and last line.

    A block without a last line, or interrupted by another block, ends where its lines stop looking like base64.
    """
    if WORD not in text:
        return
    begins = list(re.finditer(_BEGIN, text))
    limits = [*(match.start() for match in begins), len(text)][1:]
    end = 0
    for begin, limit in zip(begins, limits, strict=True):
        start = begin.end()
        if end >= 0 and end < start:
            end = text.find(END, start)
        if 0 <= end < limit and end - start <= LONGEST:
            stop = end
        else:
            lines = re.compile(_LINES).match(text, start, limit)
            stop = lines.end() if lines else start
        start, stop = _trimmed(text, start, stop)
        plain = re.sub(_NO_KEY, "", text[start:stop])
        if len(plain) >= _FEWEST and re.search(_RUN, text[start:stop]):
            yield start, stop, plain


def open_block(text: str, settled: int) -> int | None:
    """Return the start of the last key block in `text` if it may continue, else `None`.

    It may continue if all its text up to `settled` looks like base64.
    """
    around = max(0, text.rfind(WORD) - 64)
    begins = list(re.finditer(_BEGIN, text[around:])) if WORD in text else []
    if not begins:
        return None
    start = around + begins[-1].end()
    lines = re.compile(_LINES).match(text, start)
    end = lines.end() if lines else start
    return start if end >= settled or not text[end:settled].strip() else None


def _trimmed(text: str, start: int, stop: int) -> tuple[int, int]:
    """Return `start` and `stop` without the line ends and quotes at both edges of the block."""
    head = re.compile(_EDGE).match(text, start, stop)
    start = head.end() if head else start
    while stop > start and (text[stop - 1] in " \t\r\n\"'," or (text[stop - 1] == "+" and text[stop - 2] in " \"'")):
        stop -= 1
    if text[start:stop].endswith(("\\n", "\\r")):
        stop -= 2
    return start, stop


Check = Callable[[str], bool]


class Shape(Record):
    """One rule. Its pattern is applied only to texts that contain one of its words."""

    rule: str
    words: tuple[str, ...]
    """Words, one of which occurs in every text that the pattern matches. In lower case if `folded`."""
    pattern: str
    """The pattern. Its first group is the secret. Without a group, the whole match is."""
    folded: bool = False
    """Whether the pattern is applied to the text in lower case."""
    apart: bool = False
    """Whether the match must not follow a letter or digit."""
    shortest: int = 0
    """Minimum length of a match, in characters without a blank. Set for rules whose words occur in most texts."""
    check: Check | None = None
    """Predicate for the match: whether it is a secret."""
    before: Check | None = None
    """Predicate for the word right before the match: whether it fits."""


_OFTEN = " etaoinrslcdhupmfgyvbw.:/kx-_=,AEIOSRTNLCDPMBFGHUVWKJYXQZ1023456789z"
"""Characters by frequency in text and code, the most frequent first."""
KEY_BLOCK = "key_block"
"""The rule of private keys in text. A function finds them, not a pattern."""

_BREAK = r"""[\s"'\\:=,>]"""
_HEX = "[0-9a-f]"
_IN_WORD = "[A-Za-z0-9_-]"
_UUID = f"{_HEX}{{8}}-(?:{_HEX}{{4}}-){{3}}{_HEX}{{12}}"
_PARAMETER = "[?&;%](?:(?<!%)|(?<=%)(?:3f|26|3b))"
# No possessive groups here: Python before 3.11.5 fails on those that look ahead (github.com/python/cpython/issues/106052).
_VALUE = r"""((?:(?!%26|%3b)[^\s&;"'<>#\\]){4,4096})"""
_ENDED_VALUE = r"""((?:(?!%26|%3b)[^\s&;"'<>#\\.()\[\]{}]){4,256})(?=[\s&;"'<>#\\]|%26|%3b|$)"""
# The name of an assigned value. It begins with one of few letters, so that the search skips most of a text. Lookbehinds
# then check the text before a word (the token of a page of results is not a secret).
_PAGE_TOKENS = "".join(
    rf"(?<!{word}token)" for word in ("next", "next[_-]", "page", "page[_-]", "continuation", "publickey")
)
_KINDS_OF_KEYS = ("api", "auth", "admin", "access|master|shared", "private|signing|account|service", "encryption")
_SECRET_KEYS = "|".join(rf"(?<=(?:{kinds}){joint}key)" for kinds in _KINDS_OF_KEYS for joint in ("", "[_-]"))
_NAME = (
    rf"(?:secret|token{_PAGE_TOKENS}|passw(?:or)?d|passphrase|pwd|credential|key(?:{_SECRET_KEYS}))"
    r"[a-z0-9_-]{0,24}+"
)

SHAPES: tuple[Shape, ...] = (
    # The vendors' documented prefixes, with the documented length if there is one.
    # docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html
    Shape(rule="aws_access_key", words=("AKIA", "ASIA"), pattern=r"A[KS]IA[A-Z0-9]{16}(?![A-Za-z0-9])", apart=True),
    Shape(
        rule="aws_secret_key",
        words=("secret",),
        pattern=rf"secret[_-]?(?:access[_-]?)?key(?:{_BREAK}{{1,12}})([a-z0-9/+]{{40}})(?![a-z0-9/+=])",
        folded=True,
        check=is_dense,
    ),
    # github.blog/2021-04-05-behind-githubs-new-authentication-token-formats
    Shape(rule="github", words=("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), pattern=r"gh[pousr]_[A-Za-z0-9_]{36,255}"),
    Shape(rule="github", words=("github_pat_",), pattern=r"github_pat_[A-Za-z0-9_]{22,255}"),
    # docs.gitlab.com/security/tokens (token prefixes)
    Shape(
        rule="gitlab",
        words=("gl",),
        pattern=r"gl(?:pat|dt|rtr?|cbt|ptt|ft|soat|imt|agent|oas)-(?:[A-Za-z0-9_-]|\.(?=[A-Za-z0-9])){20,320}",
        shortest=25,
    ),
    # The prefixes of the keys that these vendors issue.
    Shape(rule="anthropic", words=("sk-ant-",), pattern=rf"sk-ant-{_IN_WORD}{{20,256}}"),
    Shape(
        rule="openai",
        words=("sk-",),
        pattern=rf"sk-(?:(?:proj|svcacct|admin|None|or-v1)-{_IN_WORD}{{20,256}}|(?!ant-)[A-Za-z0-9]{{20,128}})",
        apart=True,
        check=has_digit,
    ),
    Shape(rule="groq", words=("gsk_",), pattern=r"gsk_[A-Za-z0-9]{40,64}(?![A-Za-z0-9])", apart=True),
    Shape(rule="xai", words=("xai-",), pattern=r"xai-[A-Za-z0-9]{60,100}(?![A-Za-z0-9])", apart=True),
    Shape(rule="perplexity", words=("pplx-",), pattern=r"pplx-[A-Za-z0-9]{40,64}(?![A-Za-z0-9])", apart=True),
    Shape(rule="replicate", words=("r8_",), pattern=r"r8_[A-Za-z0-9]{37,40}(?![A-Za-z0-9])", apart=True),
    # huggingface.co/docs/hub/security-tokens
    Shape(rule="hugging_face", words=("hf_",), pattern=r"hf_[A-Za-z0-9]{34,40}(?![A-Za-z0-9])", apart=True),
    # cloud.google.com/docs/authentication/api-keys, and Google's OAuth 2.0 pages
    Shape(rule="google_api_key", words=("AIza",), pattern=rf"AIza{_IN_WORD}{{35}}(?!{_IN_WORD})", apart=True),
    Shape(rule="google_oauth", words=("ya29.",), pattern=r"ya29\.[A-Za-z0-9_-]{20,2048}", apart=True),
    Shape(rule="google_oauth", words=("GOCSPX-",), pattern=rf"GOCSPX-{_IN_WORD}{{28}}(?!{_IN_WORD})"),
    # docs.slack.dev/authentication/tokens; docs.slack.dev/messaging/sending-messages-using-incoming-webhooks
    Shape(
        rule="slack",
        words=("xox", "xapp-"),
        pattern=r"x(?:ox[abceoprs](?:\.xox[bp])?|app)-(?=[A-Za-z0-9-]{0,20}[0-9])[A-Za-z0-9-]{10,255}",
        apart=True,
    ),
    Shape(
        rule="slack_webhook",
        words=("hooks.slack.com",),
        pattern=r"hooks\.slack\.com(?:\\?/)(?:services|workflows|triggers)(?:\\?/)([A-Za-z0-9+/\\_-]{20,128})",
    ),
    # docs.stripe.com/keys; docs.stripe.com/webhooks
    Shape(
        rule="stripe",
        words=("k_live_", "k_test_"),
        pattern=r"[rs]k_(?:live|test)_[A-Za-z0-9]{16,255}",
        apart=True,
    ),
    Shape(rule="stripe", words=("whsec_",), pattern=r"whsec_[A-Za-z0-9+/]{32,64}", apart=True),
    # github.blog/2021-09-23-announcing-npms-new-access-token-format
    Shape(rule="npm", words=("npm_",), pattern=r"npm_[A-Za-z0-9]{36}(?![A-Za-z0-9])", apart=True),
    # pypi.org/help/#apitoken: `pypi-` and a macaroon, whose first bytes are always the same
    Shape(rule="pypi", words=("pypi-AgE",), pattern=rf"pypi-AgE{_IN_WORD}{{30,512}}"),
    Shape(rule="rubygems", words=("rubygems_",), pattern=rf"rubygems_{_HEX}{{48}}(?![A-Za-z0-9])"),
    # docs.docker.com/security/access-tokens
    Shape(rule="docker", words=("dckr_",), pattern=rf"dckr_[po]at_{_IN_WORD}{{20,64}}"),
    # docs.sendgrid.com (API keys): `SG.`, 22 and 43 characters
    Shape(rule="sendgrid", words=("SG.",), pattern=rf"SG\.{_IN_WORD}{{16,32}}\.{_IN_WORD}{{32,64}}", apart=True),
    # twilio.com/docs/glossary/what-is-a-sid: `SK` and 32 hexadecimal digits
    Shape(rule="twilio", words=("SK",), pattern=rf"SK{_HEX}{{32}}(?![A-Za-z0-9])", apart=True),
    # core.telegram.org/bots/api#authorizing-your-bot; the number before the colon is the bot's name
    Shape(rule="telegram", words=(":AA",), pattern=rf":(AA{_IN_WORD}{{33}})(?!{_IN_WORD})(?<=[0-9]{{8}}:.{{35}})"),
    # docs.discord.com/developers/reference#authentication; the part before the first point is the bot's number
    Shape(
        rule="discord",
        words=(".",),
        pattern=rf"\.(?<={_IN_WORD}{{24}}\.)({_IN_WORD}{{6}}\.{_IN_WORD}{{27,40}})",
        before=stands_for_number,
        shortest=59,
    ),
    Shape(
        rule="discord_webhook",
        words=("/webhooks/",),
        pattern=rf"/webhooks/[0-9]{{17,20}}/({_IN_WORD}{{60,80}})",
    ),
    # learn.microsoft.com/azure/storage/common/storage-configure-connection-string; .../storage-sas-overview
    Shape(
        rule="azure_key",
        words=("AccountKey=", "SharedAccessKey="),
        pattern=r"(?:Account|SharedAccess)Key=([A-Za-z0-9+/]{43,86}={1,2})",
    ),
    Shape(rule="azure_sas", words=("sig=",), pattern=r"sig=((?:[A-Za-z0-9/+_-]|%2[BFbf]){43}(?:=|%3[Dd]))", apart=True),
    Shape(rule="digitalocean", words=("_v1_",), pattern=rf"do[oprt]_v1_{_HEX}{{64}}(?![A-Za-z0-9])"),
    # docs.databricks.com/dev-tools/auth/pat
    Shape(rule="databricks", words=("dapi",), pattern=rf"dapi{_HEX}{{32}}(?:-[0-9])?(?![A-Za-z0-9])", apart=True),
    # shopify.dev/docs/apps/auth (access tokens)
    Shape(rule="shopify", words=("shp",), pattern=r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}(?![A-Za-z0-9])"),
    Shape(rule="mailgun", words=("key-",), pattern=rf"key-(?<![_-]key-){_HEX}{{32}}(?![A-Za-z0-9])", apart=True),
    # developer.hashicorp.com/vault/docs/concepts/tokens
    Shape(rule="vault", words=("hvs.", "hvb.", "hvr."), pattern=rf"hv[sbr]\.{_IN_WORD}{{24,512}}", apart=True),
    # C2SP.org/age
    Shape(rule="age", words=("AGE-SECRET-KEY-",), pattern=r"AGE-SECRET-KEY-(?:PQ-)?1[A-Z0-9]{50,80}"),
    Shape(rule="linear", words=("lin_api_",), pattern=r"lin_api_[A-Za-z0-9]{40}(?![A-Za-z0-9])"),
    Shape(rule="tailscale", words=("tskey-",), pattern=r"tskey-[a-z]{2,10}-[A-Za-z0-9]{6,40}-[A-Za-z0-9]{16,64}"),
    Shape(rule="grafana", words=("glsa_",), pattern=r"glsa_[A-Za-z0-9]{32}_[0-9a-fA-F]{8}"),
    Shape(rule="grafana", words=("glc_",), pattern=r"glc_[A-Za-z0-9+/]{32,400}={0,3}", apart=True),
    Shape(rule="atlassian", words=("ATATT3", "ATCTT3"), pattern=r"AT[AC]TT3[A-Za-z0-9_=-]{40,320}"),
    Shape(rule="atlassian", words=("ATBB",), pattern=r"ATBB[A-Za-z0-9]{24,32}(?![A-Za-z0-9])", apart=True),
    # The following shapes are those of public secret detectors (rules of gitleaks, github.com/gitleaks/gitleaks).
    # learn.microsoft.com/entra (client secrets)
    Shape(
        rule="azure_client_secret",
        words=("Q~",),
        pattern=r"[A-Za-z0-9_~.]{3}[0-9]Q~(?:[A-Za-z0-9_~-]|\.(?=[A-Za-z0-9])){31,34}(?![A-Za-z0-9_~-])",
        apart=True,
    ),
    # docs.doppler.com/docs/service-tokens
    Shape(
        rule="doppler",
        words=("dp.",),
        shortest=46,
        pattern=r"dp\.(?:pt|ct|st|sa|scim|audit)\.(?:[a-z0-9_-]{2,35}\.)?[A-Za-z0-9]{40,44}(?![A-Za-z0-9])",
        apart=True,
    ),
    Shape(rule="postman", words=("PMAK-",), pattern=rf"PMAK-{_HEX}{{24}}-{_HEX}{{34}}(?![A-Za-z0-9])", apart=True),
    # developer.hashicorp.com/terraform/cloud-docs/users-teams-organizations/api-tokens
    Shape(
        rule="terraform", words=(".atlasv1.",), pattern=r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,70}", apart=True
    ),
    Shape(
        rule="planetscale",
        words=("pscale_",),
        pattern=r"pscale_(?:tkn|pw|oauth)_(?:[A-Za-z0-9_=-]|\.(?=[A-Za-z0-9])){32,64}",
    ),
    Shape(rule="pulumi", words=("pul-",), pattern=rf"pul-{_HEX}{{40}}(?![A-Za-z0-9])", apart=True),
    Shape(rule="artifactory", words=("AKCp",), pattern=r"AKCp[A-Za-z0-9]{69,73}(?![A-Za-z0-9])", apart=True),
    # developer.squareup.com/docs/build-basics/access-tokens; base64 of data with zeros also contains EAAA
    Shape(
        rule="square",
        words=("EAAA",),
        pattern=r"(?<![A-Za-z0-9+/]{4})EAAA[A-Za-z0-9_-]{60}(?![A-Za-z0-9+/=_-])",
        apart=True,
        check=is_dense,
    ),
    Shape(rule="square", words=("sq0",), pattern=rf"sq0(?:atp-{_IN_WORD}{{22}}|csp-{_IN_WORD}{{43}})(?!{_IN_WORD})"),
    # devcenter.heroku.com/articles/authentication
    Shape(rule="heroku", words=("HRKU-",), pattern=rf"HRKU-AA{_IN_WORD}{{58}}(?!{_IN_WORD})"),
    Shape(
        rule="heroku",
        words=("heroku",),
        pattern=rf"heroku[a-z0-9_.-]{{0,24}}+\\{{0,4}}[\"']?\s{{0,4}}(?:=>|:=|=|:)\s{{0,4}}\\{{0,4}}[\"']?({_UUID})",
        folded=True,
    ),
    # developers.notion.com, developers.figma.com, docs.sentry.io, docs.newrelic.com, supabase.com/docs, fly.io/docs, and
    # dropbox.com/developers
    Shape(rule="notion", words=("ntn_",), pattern=r"ntn_[0-9]{11}[A-Za-z0-9]{35}(?![A-Za-z0-9])", apart=True),
    Shape(rule="figma", words=("figd_",), pattern=rf"figd_{_IN_WORD}{{40,44}}(?!{_IN_WORD})", apart=True),
    Shape(
        rule="sentry", words=("sntrys_",), pattern=r"sntrys_[A-Za-z0-9+/]{40,512}={0,2}_[A-Za-z0-9+/]{43}", apart=True
    ),
    Shape(rule="sentry", words=("sntryu_",), pattern=rf"sntryu_{_HEX}{{64}}(?![A-Za-z0-9])", apart=True),
    Shape(
        rule="new_relic",
        words=("NRAK-", "NRII-"),
        pattern=r"NR(?:AK-[A-Z0-9]{27}|II-[A-Za-z0-9_-]{32})(?![A-Za-z0-9])",
        apart=True,
    ),
    Shape(rule="supabase", words=("sbp_",), pattern=rf"sbp_{_HEX}{{40}}(?![A-Za-z0-9])", apart=True),
    Shape(
        rule="supabase", words=("sb_secret_",), pattern=rf"sb_secret_{_IN_WORD}{{20,64}}", apart=True, check=has_digit
    ),
    Shape(rule="dropbox", words=("sl.",), pattern=rf"sl\.(?:u\.)?{_IN_WORD}{{120,2048}}", apart=True, shortest=123),
    Shape(rule="fly", words=("fo1_",), pattern=rf"fo1_{_IN_WORD}{{43}}(?!{_IN_WORD})", apart=True),
    Shape(
        rule="fly", words=("fm1a_", "fm1r_", "fm2_"), pattern=r"fm(?:1[ar]|2)_[A-Za-z0-9+/]{100,2048}={0,3}", apart=True
    ),
    # crypt(5), PHC string format
    Shape(
        rule="password_hash",
        words=("$",),
        pattern=(
            r"\$(?:(?:1|apr1)\$[./A-Za-z0-9]{1,16}\$[./A-Za-z0-9]{22}(?![/A-Za-z0-9])"
            r"|2[abxy]\$[0-9]{2}\$[./A-Za-z0-9]{53}"
            r"|[56]\$(?:rounds=[0-9]{1,9}\$)?[./A-Za-z0-9]{1,16}\$[./A-Za-z0-9]{43,86}"
            r"|(?:g?y|7)\$[./A-Za-z0-9]{2,8}\$[./A-Za-z0-9]{8,86}\$[./A-Za-z0-9]{43}"
            r"|argon2(?:id|i|d)\$v=[0-9]{1,3}\$[a-z0-9=,]{5,40}\$[A-Za-z0-9+/]{11,64}\$[A-Za-z0-9+/]{20,128})"
        ),
        shortest=27,
    ),
    # RFC 2307, section 5.3; docs.djangoproject.com (password hashers)
    Shape(rule="password_hash", words=("SHA}",), pattern=r"\{S?SHA\}[A-Za-z0-9+/]{27,64}={0,2}"),
    Shape(
        rule="password_hash",
        words=("pbkdf2_",),
        pattern=r"pbkdf2_sha(?:1|256)\$[0-9]{1,9}\$[A-Za-z0-9]{8,32}\$[A-Za-z0-9+/]{27,44}=",
    ),
    # Shapes by context.
    # RFC 7519; RFC 7515: the header names the signature algorithm
    Shape(
        rule="jwt",
        words=("eyJ",),
        pattern=rf"eyJ{_IN_WORD}{{12,}}+(?:\.{_IN_WORD}++){{0,4}}+",
        check=has_token_header,
    ),
    # RFC 6750, section 2.1; RFC 7617, section 2
    Shape(
        rule="bearer",
        words=("bearer",),
        pattern=r"bearer(?:\s|\\u0020|%20|\+){1,4}([a-z0-9._~+/-]{16,4096}={0,2})",
        folded=True,
        check=is_chance,
    ),
    Shape(
        rule="basic",
        words=("basic",),
        pattern=r"basic(?:\s|\\u0020|%20|\+){1,4}([a-z0-9+/]{8,1024}={0,2})(?![a-z0-9+/=])",
        folded=True,
        check=is_basic_pair,
    ),
    # docs.docker.com/reference/cli/docker/login, docs.npmjs.com/cli/configuring-npm/npmrc
    Shape(
        rule="basic",
        words=("auth",),
        pattern=r"""auth\\{0,4}["']?\s{0,4}[:=]\s{0,4}\\{0,4}["']?([a-z0-9+/]{8,1024}={0,2})(?![a-z0-9+/=])""",
        folded=True,
        check=is_basic_pair,
    ),
    Shape(
        rule="npmrc",
        words=("_authtoken", "_password"),
        pattern=r""":_(?:authtoken|password)\s{0,4}=\s{0,4}["']?([^\s"'\\]{8,4096})""",
        folded=True,
        check=is_password,
    ),
    # RFC 6265, sections 4.1 and 4.2
    Shape(
        rule="cookie",
        words=("cookie",),
        pattern=r"""(?:cookie\\{0,4}["']?\s{0,4}:\s{0,4}\\{0,4}["']?|;\s{0,4})[^\s"'\\=;:]{1,128}+=([a-z0-9._~%+/*-]{16,4096}+)""",
        folded=True,
        check=is_chance,
    ),
    # RFC 3986, section 3.2.1
    Shape(
        rule="url_password",
        words=(":/", ":\\/"),
        pattern=r""":(?:\\?/){2}[^\s/:@"'<>\\|]{0,128}:([^\s/@"'<>\\|]{1,256})@[A-Za-z0-9\[$%{]""",
        check=is_password,
    ),
    Shape(
        rule="url_password",
        words=("%3a%2f%2f",),
        pattern=r"""%3a%2f%2f[^\s/:@"'<>\\|%]{0,128}%3a((?:(?!%40)[^\s/@"'<>\\|]){1,256})%40""",
        folded=True,
        check=is_password,
    ),
    Shape(
        rule="url_token",
        words=(":/", ":\\/"),
        pattern=r""":(?:\\?/){2}([A-Za-z0-9_.~%+-]{20,256}+)(?::[^\s/:@"'<>\\|]{0,256})?@[A-Za-z0-9\[$%{]""",
        check=is_bare_chance,
    ),
    # RFC 3986, section 3.4; ODBC and JDBC also use `;` and `=`
    Shape(
        rule="parameter",
        words=("token", "key", "sig", "secret", "auth"),
        pattern=rf"{_PARAMETER}(?:[a-z0-9_.-]{{0,24}}(?:token|key|sig|signature|secret|auth))(?:=|%3d){_VALUE}",
        folded=True,
        check=is_long_chance,
    ),
    Shape(
        rule="parameter",
        words=("passw", "pwd", "pass="),
        pattern=rf"{_PARAMETER}(?:[a-z0-9_.-]{{0,24}}(?:password|passwd|passphrase|pwd|pass))(?:=|%3d){_ENDED_VALUE}",
        folded=True,
        check=is_mixed_password,
    ),
    # curl(1), mysql(1), postgresql.org/docs/current/libpq-pgpass.html, SQL statements that set a password
    Shape(
        rule="command_password",
        words=("curl",),
        pattern=r"""curl(?:\s{1,4}[^\s|;&]{1,512}+){0,20}?\s{1,4}(?:-u|--user)[\s=]{0,4}["']?[^\s:"'\\]{1,128}:([^\s"'\\]{1,256})""",
        check=is_password,
    ),
    Shape(
        rule="command_password",
        words=("mysql", "mariadb"),
        pattern=r"""(?:mysql|mariadb)[a-z-]{0,12}+(?:\s{1,4}[^\s|;&]{1,128}+){0,12}?\s{1,4}-p["']?([^\s"'\\]{4,128})""",
        check=is_mixed_password,
    ),
    Shape(
        rule="pgpass",
        words=(":5432:",),
        pattern=r":5432:[^\s:]{1,64}+:[^\s:]{1,64}+:([^\s:\"'\\]{4,128})(?=\s|\\|$)",
        check=is_password,
    ),
    Shape(
        rule="sql_password",
        words=("password", "identified"),
        pattern=(
            r"(?:alter|create)\s{1,4}(?:user|role|login)\s{1,4}(?:if\s{1,4}(?:not\s{1,4})?exists\s{1,4})?[^\s;]{1,128}+(?:\s{1,4}(?:with|encrypted|login|superuser)){0,4}"
            r"\s{1,4}(?:password|identified\s{1,4}by)\s{0,4}=?\s{0,4}\\?'([^'\s\\]{4,256})"
        ),
        folded=True,
        check=is_password,
    ),
    # ftp(1), section on netrc
    Shape(
        rule="netrc",
        words=("machine",),
        pattern=r"machine\s{1,8}\S{1,253}\s{1,8}login\s{1,8}\S{1,128}\s{1,8}password\s{1,8}([^\s\\\"']{4,256})",
        folded=True,
        check=is_password,
    ),
    Shape(
        rule="assigned",
        words=("secret", "token", "passw", "passphrase", "pwd", "credential", "key"),
        pattern=_NAME
        + r"""(?:\\{0,4}["'])?\s{0,8}(?:=>|:=|=|:)\s{0,8}(?:\\{0,4}["'])([^\s"'\\]{12,4096})(?:\\{0,4}["'])""",
        folded=True,
        check=is_chance,
    ),
    Shape(
        rule="assigned",
        words=("secret", "token", "passw", "passphrase", "pwd", "credential", "key"),
        pattern=_NAME + r"""(?:=|:\s{1,4})([a-z0-9_+/.~!@#%^*-]{20,4096}={0,2})(?=[\s"'\\,;&]|$)""",
        folded=True,
        check=is_bare_chance,
    ),
    Shape(
        rule="assigned",
        words=("passw", "passphrase", "pwd"),
        pattern=r"(?:password|passwd|passphrase|pwd)(?:=|:\s{1,4})([a-z0-9!@#$%^&*+~?-]{8,64}+)(?=[\s\"'\\,;]|$)",
        folded=True,
        check=is_marked_password,
    ),
    Shape(rule=KEY_BLOCK, words=(WORD,), pattern=""),
)


def shapes_for(text: str) -> tuple[Shape, ...]:
    """Return the shapes that may match in `text` or in a part of it."""
    folded = _folded(text)
    words = {word for sign, of_sign in _signs(folded=False) if sign in text for word in of_sign if word in text}
    words |= {word for sign, of_sign in _signs(folded=True) if sign in folded for word in of_sign if word in folded}
    return _with_any(frozenset(words)) if words else ()


@lru_cache(maxsize=256)
def _with_any(words: frozenset[str]) -> tuple[Shape, ...]:
    """Return the shapes that have any of these words. Most texts of a session have the same few."""
    return tuple(shape for shape in SHAPES if not words.isdisjoint(shape.words))


@cache
def _signs(*, folded: bool) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the words of the shapes, by the rarest character of each.

    Searching for a single character takes a tenth of the time.
    """
    by_sign: dict[str, dict[str, None]] = {}
    for shape in SHAPES:
        for word in shape.words if shape.folded is folded else ():
            by_sign.setdefault(max(word, key=_OFTEN.find), {})[word] = None
    return tuple((sign, tuple(words)) for sign, words in by_sign.items())


def shape_spans(text: str, shapes: Sequence[Shape]) -> Iterator[Span]:
    """Yield the secrets in `text` that these shapes find. They may overlap."""
    if not shapes:
        return
    folded = _folded(text) if any(shape.folded for shape in shapes) else text
    for shape in shapes:
        looked_at = folded if shape.folded else text
        if shape.rule == KEY_BLOCK:
            yield from (Span(start=a, end=b, rule=KEY_BLOCK, plain=plain) for a, b, plain in _key_blocks(text))
        elif any(word in looked_at for word in shape.words):
            yield from _spans_of(shape, text, looked_at)


def _spans_of(shape: Shape, text: str, looked_at: str) -> Iterator[Span]:
    for match in _compiled(shape.pattern).finditer(looked_at):
        start, end = match.span(1 if match.re.groups else 0)
        secret = text[start:end]
        if secret.startswith(OPENING) and MARK.fullmatch(secret):
            continue
        if is_filler(secret) or (shape.apart and not is_apart(text, match.start())):
            continue
        if shape.before is not None and not shape.before(segment_before(text, match.start())):
            continue
        if shape.check is None or shape.check(secret):
            yield Span(start=start, end=end, rule=shape.rule, plain=secret)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Compile a pattern at its first use. Compiling all patterns takes longer than many commands."""
    return re.compile(pattern)


def _folded(text: str) -> str:
    """Return `text` in lower case, with all positions unchanged.

    `\u0130` is replaced first, as its lower case has two characters (Unicode, SpecialCasing.txt).
    """
    low = text.lower()
    return low if len(low) == len(text) else text.replace("\u0130", "i").lower()
