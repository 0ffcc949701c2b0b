"""Redaction: planted secrets are found in what quotes them, real source trees are left alone, nothing hostile is slow.

No secret stands here as a scanner would find it: each is put together when the test runs.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import random
import re
import shlex
import string
import sysconfig
from collections.abc import Callable, Iterator
from urllib.parse import quote, quote_plus

from hypothesis import given, settings
from hypothesis import strategies as st
from planted_secrets import (
    ALNUM,
    BASE64,
    CONTEXTS,
    CREDENTIALS,
    DRESSES,
    HEX,
    PLANTED,
    WORD,
    chance,
    credential,
    rule_of,
)
from rows import all_rows
from sizes import examples, proof_size
from work import assert_linear

from harness.actions import JsonValue
from harness.redaction.known_values import forms_of, is_ordinary
from harness.redaction.marks import is_redacted, marks_of
from harness.redaction.redactor import Redactor
from harness.redaction.secret_checks import is_chance
from harness.redaction.shapes import SHAPES, shape_spans, shapes_for
from harness.redaction.stream import RedactedStream

KEY = b"a key of the installation"


def mark_of(rule: str, plain: str) -> str:
    return f"[redacted:{rule}:{hmac.new(KEY, plain.encode(), hashlib.sha256).hexdigest()[:8]}]"


def redactor(*secrets: str) -> Redactor:
    return Redactor(secrets, key=KEY)


@all_rows("context", list(CONTEXTS))
@all_rows("name", list(PLANTED))
def test_planted_secret_is_replaced_exactly(name: str, context: str) -> None:
    secret = PLANTED[name]()
    quoted = CONTEXTS[context](secret)
    text, hits = redactor().redact_and_count(quoted)
    mark = mark_of(rule_of(name), secret)
    assert (text, hits) == (quoted.replace(secret, mark), {rule_of(name): quoted.count(secret)})


@all_rows("dress", list(DRESSES))
@all_rows("name", list(PLANTED))
def test_encoded_secret_has_the_mark_of_the_plain_one(name: str, dress: str) -> None:
    secret = PLANTED[name]()
    one = redactor()
    redacted = one.redact(DRESSES[dress](secret))
    assert one.redact(secret) in redacted
    plain = secret.encode()
    assert not any(part in redacted for part in (plain.hex(), plain.hex().upper(), base64.b64encode(plain).decode()))


@all_rows("name", list(CREDENTIALS))
def test_credential_is_recognized_by_its_context_and_replaced_exactly(name: str) -> None:
    made = [credential(name) for _ in range(200)]
    found = [(secret, text) for secret, text in made if redactor().redact(text) != text]
    for secret, text in found:
        assert redactor().redact(text) == text.replace(secret, mark_of(rule_of(name), secret))
    # Of what only its name tells, chance makes a few that look like words: the rest is found without exception.
    assert len(found) >= (190 if rule_of(name) in ("assigned", "bearer") else 200)


def pem(kind: str = "RSA PRIVATE KEY", lines: int = 12) -> tuple[str, str]:
    """Return a block, and the base64 in it."""
    body = [chance(BASE64, 64) for _ in range(lines)] + [chance(BASE64, 30) + "=="]
    return "\n".join((f"-----BEGIN {kind}-----", *body, f"-----END {kind}-----", "")), "".join(body)


@all_rows(
    "kind",
    [
        "RSA PRIVATE KEY",
        "PRIVATE KEY",
        "EC PRIVATE KEY",
        "OPENSSH PRIVATE KEY",
        "ENCRYPTED PRIVATE KEY",
        "PGP PRIVATE KEY BLOCK",
    ],
)
@all_rows(
    "quote_it",
    [
        lambda block: block,
        lambda block: json.dumps({"key": block}),
        lambda block: json.dumps({"arguments": json.dumps({"key": block})}),
        lambda block: "key: |\n" + "".join(f"  {line}\n" for line in block.splitlines()),
        lambda block: "".join(f"+{line}\n" for line in block.splitlines()),
        lambda block: "".join(f"{n:6d}\t{line}\n" for n, line in enumerate(block.splitlines(), 1)),
        lambda block: f'KEY="""{block}"""',
        lambda block: block.replace("\n", "\r\n"),
    ],
    ids="plain json json2 yaml diff listing python crlf".split(),
)
def test_a_private_key_goes_but_its_first_and_last_line_stay(kind: str, quote_it: Callable[[str], str]) -> None:
    block, body = pem(kind)
    text, hits = redactor().redact_and_count(quote_it(block))
    assert hits == {"key_block": 1}
    assert f"-----BEGIN {kind}-----" in text
    assert f"-----END {kind}-----" in text
    assert not any(body[at : at + 12] in text for at in range(0, len(body) - 12, 12))


@all_rows("escaped", [False, True])
def test_a_private_key_that_is_cut_off_goes_up_to_where_it_was_cut(escaped: bool) -> None:
    block, body = pem()
    for end in range(120, len(block) - 40, 23):
        text = block[:end].replace("\n", "\\n") if escaped else block[:end]
        redacted = redactor().redact(text)
        assert not any(body[at : at + 16] in redacted for at in range(len(body) - 16)), text
    text = block[:500] + "\nthen other words come, which stay\n"
    assert redactor().redact(text).endswith("then other words come, which stay\n")


def test_one_key_has_one_mark_however_it_is_quoted() -> None:
    block, body = pem()
    marks = {redactor().issued(redactor().redact(t)) for t in (block,)}  # what another redactor made is not issued
    assert marks == {""}
    one = redactor()
    texts = [one.redact(text) for text in (block, json.dumps(block), block.replace("\n", "\r\n"))]
    assert {one.issued(text) for text in texts} == {mark_of("key_block", body)}


SECRET = "s3cr3t/V+lue with 'a' \"b\" \\ & ünïcode 漢"


def encodings(secret: str) -> Iterator[tuple[str, str]]:
    data = secret.encode()
    yield "plain", secret
    yield "json", json.dumps(secret)[1:-1]
    yield "json, characters as they are", json.dumps(secret, ensure_ascii=False)[1:-1]
    yield "json in json", json.dumps(json.dumps(secret))
    yield "json in json, characters as they are", json.dumps(json.dumps(secret, ensure_ascii=False), ensure_ascii=False)
    yield "repr", repr(secret)
    yield "percent", quote(secret, safe="")
    yield "percent, slashes stay", quote(secret)
    yield "percent, small", re.sub("%..", lambda found: found[0].lower(), quote(secret, safe=""))
    yield "percent, as JavaScript", quote(secret, safe="!'()*")
    yield "form", quote_plus(secret)
    yield "hex", data.hex()
    yield "hex, capitals", data.hex().upper()
    yield "shell", shlex.quote(secret)
    for before in range(4):
        for after in range(3):
            longer = b"u" * before + data + b"v" * after
            yield f"base64 between {before} and {after}", base64.b64encode(longer).decode()
            yield f"base64url between {before} and {after}", base64.urlsafe_b64encode(longer).decode()
    yield "base64 in lines", base64.encodebytes(b"u" * 50 + data + b"v" * 50).decode()
    yield "base64 in lines, in json", json.dumps(base64.encodebytes(b"u" * 50 + data + b"v" * 50).decode())


VALUES = {
    "everything": SECRET,
    "a token": chance(ALNUM, 40),
    "base64": chance(BASE64, 86) + "==",
    "hex": chance(HEX, 32),
    "long": chance(WORD, 164),
    "a sentence": "correct horse battery staple",
    "quotes": 'it\'s a "secret" $HOME',
    "lines": "first line of it\nsecond line of it",
    "short": "Xk39sLq8",
}


@all_rows("name", list(VALUES))
def test_a_known_value_is_found_in_every_encoding_and_has_one_mark(name: str) -> None:
    secret = VALUES[name]
    one = Redactor([secret], key=KEY, shapes=False)
    missed = [
        encoding
        for encoding, text in encodings(secret)
        if mark_of("known", secret) not in one.redact(f"see <{text}> and")
        and not (name == "short" and "base64" in encoding)  # too few of its characters are sure
    ]
    assert missed == []


@all_rows("encoding", [name for name, _ in encodings(SECRET)])
def test_of_an_encoded_value_no_more_is_left_than_the_characters_at_its_edges(encoding: str) -> None:
    text = dict(encodings(SECRET))[encoding]
    left = redactor(SECRET).redact(text).replace(mark_of("known", SECRET), "")
    assert len(left) <= (150 if "lines" in encoding else 12)
    assert "s3cr3t" not in left


def test_the_longest_known_value_is_replaced_first_and_what_overlaps_goes_as_one() -> None:
    one = redactor("alpha-beta-1", "alpha-beta-1-gamma-2", "gamma-2-delta-3")
    assert one.redact("alpha-beta-1-gamma-2") == mark_of("known", "alpha-beta-1-gamma-2")
    assert one.redact("<alpha-beta-1-gamma-2-delta-3>") == f"<{mark_of('known', 'alpha-beta-1-gamma-2')}>"


@all_rows(
    "value",
    ["short12", "localhost", "Production", "12345678", "20240229123"[:11], "true    ", "********", "/run/user/1000/agent.sock",
     "/home/ann/.ssh/id_ed25519", "~/usr/x", "redacted:", "[redacted:known:"],
)  # fmt: skip
def test_short_or_ordinary_value_is_not_masked(value: str) -> None:
    text = f"see {value} here, and [redacted:known:01234567]"
    assert redactor(value).redact(text) == text


@all_rows(
    "value",
    [
        "swordfish12",
        "123456789012",
        "/K7MDENG/bPxRfiCYzEXA",
        "a-b-c-d-e",
        "incomprehensible",
        "two words",
        "passwörter",
    ],
)
def test_value_that_is_not_ordinary_is_masked(value: str) -> None:
    assert not is_ordinary(value)
    assert redactor(value).redact(f"see {value}.") == f"see {mark_of('known', value)}."


def test_without_shapes_only_known_values_are_found() -> None:
    text = PLANTED["github"]() + " known-value-1"
    assert Redactor(["known-value-1"], key=KEY, shapes=False).redact_and_count(text)[1] == {"known": 1}


def test_equal_secrets_have_equal_marks_under_one_key_only() -> None:
    value = chance(ALNUM, 20)
    assert redactor(value).redact(value) == Redactor([value], key=KEY).redact(value)
    assert redactor(value).redact(value) != Redactor([value], key=b"another").redact(value)
    assert Redactor([value]).redact(value) != Redactor([value]).redact(value)  # random keys


def test_a_mark_counts_as_issued_only_by_who_made_or_noted_it() -> None:
    value = chance(ALNUM, 20)
    one, other = redactor(value), redactor()
    mark = one.redact(value)
    assert is_redacted(f"x{mark}y")
    assert not is_redacted("[redacted:known:0123456]")
    assert not is_redacted("[masked]")
    assert (one.issued(f"a [redacted:known:00000000] {mark}"), other.issued(mark)) == (mark, "")
    other.note(f"of a log: {mark}, again {mark}")
    assert other.issued(f"({mark})") == mark


def test_a_mark_is_never_redacted_and_its_neighbours_are() -> None:
    one = redactor("known-value-1")
    mark = one.redact("known-value-1")
    for text in (f'password = "{mark}"', f"https://ann:{mark}@db.example/x", f"Bearer {mark}", f"token: {mark}"):
        assert one.redact(text) == text
    assert one.redact(f"https://ann:{mark}rest@db") == f"https://ann:{mark_of('url_password', mark + 'rest')}@db"
    assert one.redact(f"{mark}known-value-1{mark}") == mark * 3


NOT_SECRET = (
    "password = os.environ['DB_PASSWORD']",
    "token: str = ''",
    'secret = "changeme"',
    "API_KEY=your-api-key-here-1234567890",
    "api_key = '${API_KEY_FOR_2024_USE}'",
    "OPENAI_API_KEY=sk-" + "x" * 48,
    "ghp_" + "x" * 36,
    "Authorization: Bearer <token>",
    "Bearer authentication with tokens is described below",
    "Basic authentication",
    "https://user:password@example.com/",
    "https://example.com:8080/path@2x",
    "http://localhost:3000/@scope/package",
    "git@github.com:owner/repository.git",
    "token = self.next_token(previous_token2, 1)",
    'input_tokens: 1234567890123456, "output_tokens": 12',
    "sha256:" + hashlib.sha256(b"").hexdigest(),
    "commit " + hashlib.sha1(b"", usedforsecurity=False).hexdigest(),
    '"integrity": "sha512-' + base64.b64encode(hashlib.sha512(b"a").digest()).decode() + '"',
    '"secret_token_hash": "sha256-' + base64.b64encode(hashlib.sha256(b"a").digest()).decode() + '"',
    "id: 123e4567-e89b-12d3-a456-426614174000",
    'session_token: "123e4567-e89b-12d3-a456-426614174000"',
    "data:image/png;base64," + base64.b64encode(random.Random(5).randbytes(3000)).decode(),
    "BEGIN_MARK = '-----BEGIN RSA PRIVATE KEY-----'\nEND = '-----END RSA PRIVATE KEY-----'",
    "-----BEGIN CERTIFICATE-----\n" + "\n".join(["MIIB" * 16] * 5) + "\n-----END CERTIFICATE-----",
    "-----BEGIN PUBLIC KEY-----\n" + "MIIB" * 16 + "\n-----END PUBLIC KEY-----",
    'function(e,t){var n=e.token||"",r=t.key;return n+r}' * 40,
    "class='sk-fading-circle sk-estimator-doc-link fitted'",
    "the disk-" + "a" * 30 + " and task-" + "1" * 30,
    "nextToken: " + "eyJ" + "QUJD" * 12,
    "python-3.11.7 v1.2.3 2024-02-29T00:00:00Z",
    "if (password == other && token) { find('mysql') }",
    "find /var/lib/mysql -print -path x",
    "mysql -p -u root; mysqldump --protocol=tcp -P 3306",
    "curl -u ann https://example.com:8080/a:b",
    "curl -u $USER:$PASSWORD https://example.com",
    "password = self.password; pwd=os.getcwd(), password: str",
    "password=$DB_PASSWORD password: ${DB_PASSWORD} password=%s pwd=$PWD;",
    "a=b&key=value&token=next&pass=t.pass;pwd=x.y()",
    "https://example.com/?key=getting-started&auth=oauth&token=your-token-here-1234567890",
    "https://registry.example/@scope/package https://git@github.com/a/b ssh://git@github.com:22/a",
    "Cookie: theme=dark; lang=en-GB\nSet-Cookie: seen=1; Path=/",
    "the auth: required, author = someone",
    "ALTER TABLE user ADD COLUMN password VARCHAR(64); password 'reset'",
    "echo $1$2 $5$6 s/$1$/x/ {SHA}",
    "//npm.example/:_authToken=${NPM_TOKEN}\nregistry=https://npm.example/\nengine-strict=true",
    "HEROKU_APP_ID 123e4567-e89b-12d3-a456-426614174000",
    "sha256-" + base64.b64encode(b"\0" * 60 + b"EAAA").decode(),
    base64.b64encode(("the quick brown fox jumps over the lazy dog " * 20).encode()).decode(),
    ("a text that says password and token and key " * 4).encode().hex(),
    "harness/redaction/known_values/and_a_long_path/of_a_file_in_a_folder",
    "ssh-ed25519 " + "AAAA" + base64.b64encode(random.Random(6).randbytes(51)).decode() + " ann@host",
)


@all_rows("text", NOT_SECRET, ids=range(len(NOT_SECRET)))
def test_text_that_only_looks_like_a_secret_stays(text: str) -> None:
    assert redactor().redact_and_count(text) == (text, {})


def test_base64_of_anything_is_hardly_ever_taken_for_a_secret() -> None:
    source = random.Random(7)
    texts = [base64.b64encode(source.randbytes(30_000)).decode() for _ in range(20)]
    texts += [base64.urlsafe_b64encode(source.randbytes(30_000)).decode() for _ in range(20)]
    texts += [source.randbytes(30_000).hex() for _ in range(20)]
    assert [redactor().redact_and_count(text)[1] for text in texts] == [{}] * len(texts)


SOURCE_MEGABYTES = proof_size("SOURCE_MEGABYTES", 3, full=40)


def sources() -> Iterator[str]:
    """Yield the texts of this interpreter's own library and of its packages, in an order of chance."""
    paths: list[str] = []
    for root in (sysconfig.get_path("stdlib"), sysconfig.get_path("purelib")):
        for folder, _, names in os.walk(root):
            paths += [
                os.path.join(folder, name) for name in names if name.endswith((".py", ".pyi", ".md", ".txt", ".json"))
            ]
    paths.sort()
    random.Random(1).shuffle(paths)
    for path in paths:
        with open(path, encoding="utf-8", errors="replace") as file:
            yield file.read()


def test_of_real_source_files_less_than_one_in_a_hundred_is_touched(
    record_property: Callable[[str, object], None],
) -> None:
    files = characters = hit = 0
    one = redactor()
    for text in sources():
        files, characters = files + 1, characters + len(text)
        hit += bool(one.redact_and_count(text)[1])
        if characters > SOURCE_MEGABYTES * 1_000_000:
            break
    record_property("false hits", f"{hit} of {files} files, {characters / 1e6:.0f} MB")
    print(f"{hit} of {files} files hit, {characters / 1e6:.0f} MB")
    assert files > 7 * SOURCE_MEGABYTES
    assert hit <= max(files / 100, 3)


AGAINST_CHARACTERS = proof_size("AGAINST_CHARACTERS", 40_000, full=1_000_000)
# What a pattern repeats, over and over, with what it wants at the end left out.
AGAINST = (
    "a", "A", "0", " ", "\n", "-", "_", ".", "/", ":", "=", '"', "\\", "\\n", "%20", "+",
    "secret", "secret=", "secret = ", 'token: "', "token:        ", "api_key", "key", "secret_key=", "password\":\"",
    "eyJ", "eyJ.", "eyJa.eyJa.eyJa.eyJa.eyJa.", ":AA", "12345678:AA", "://", "://a:", "://a:b", ":\\/\\/u:", "://" + "a" * 120,
    "://u:" + "b" * 250, "bearer ", "bearer " + "a" * 4000 + " ", "basic ", "basic " + "a" * 1000 + "===",
    "machine a login b password ", "machine ", "machine" + " " * 8, "machine a ", "AKIA", "ghp_", "github_pat_", "glpat-",
    "glpat-....", "sk-", "sk-proj-", "sk-ant-", "AIza", "xoxb-", "xoxb-1-", "SG.", "SG." + "a" * 32 + ".", "SK", "hf_", "npm_",
    "whsec_", "AccountKey=", "sig=", "sig=%2B", "dop_v1_", "dapi", "shpat_", "key-", "hvs.", "AGE-SECRET-KEY-", "tskey-",
    "tskey-a-", "glsa_", "/webhooks/12345678901234567/", "hooks.slack.com/services/", "M" * 24 + ".", "M" * 24 + ".abcdef.",
    "-----BEGIN PRIVATE KEY-----", "-----BEGIN PRIVATE KEY-----\n" + "M" * 64 + "\n", "-----BEGIN RSA PRIVATE KEY-----\\n",
    "-----BEGIN ", "-----END ", "PRIVATE KEY", "[redacted:", "[redacted:known:01234567]", "tokentoken_", "secret-",
    "İ", "\ud800", "\x00", "漢",
    "Q~", "abc8Q~", "dp.pt.", "glc_", "EAAA", "sl.", "fm2_", "$6$", "$6$a$", "$2a$05$", "$argon2id$v=19$",
    "heroku",
    "heroku_key: ", "auth: ", "auth: " + "a" * 1000, "cookie: ", "cookie: a=" + "b" * 500 + "\n", "%3a%2f%2f",
    "%3a%2f%2fa%3a", "?token=", "&token", "?" + "a" * 24, "?password=", "?password=ab%26", "curl ", "curl a ",
    "curl " + "a" * 500 + " ", "mysql ", "mysql a ", ":5432:", ":5432:a:b:", "alter user a ",
    "create user a with with password ",
    "create role x identified by '", "password: ", "password=!", "pwd=a1B", "://" + "a" * 256,
    "sntrys_" + "a" * 40, ".atlasv1.",
)  # fmt: skip


@all_rows("unit", AGAINST, ids=range(len(AGAINST)))
def test_shapes_find_in_much_text_made_against_them_what_they_find_in_a_little_of_it(unit: str) -> None:
    """A pattern that is not linear takes hours for a megabyte; bench/growth.py names it."""
    for begin in ("", "-----BEGIN PRIVATE KEY-----\n"):
        little, much = (begin + unit * max(2, size // len(unit)) for size in (10_000, AGAINST_CHARACTERS))
        found, expected = ({span.rule for span in shape_spans(text, SHAPES)} for text in (much, little))
        assert found == expected


DIGEST = hashlib.sha256(b"a file").hexdigest()


@all_rows("name", ["sha256", "before_sha256", "arguments_sha256", "prev", "head"])
def test_a_digest_stays_where_a_record_holds_one_and_goes_elsewhere(name: str) -> None:
    one = redactor(DIGEST)
    fields: dict[str, JsonValue] = {name: DIGEST, "deep": [{name: DIGEST, "text": DIGEST}], "text": f"see {DIGEST}"}
    mark = mark_of("known", DIGEST)
    assert one.fields(fields) == (
        {name: DIGEST, "deep": [{name: DIGEST, "text": mark}], "text": f"see {mark}"},
        {"known": 2},
    )
    assert one.fields({name: f"{DIGEST} "})[0] == {name: f"{mark} "}  # no digest alone
    assert redactor(DIGEST.upper()).fields({name: DIGEST.upper()})[0] == {name: mark_of("known", DIGEST.upper())}


def test_a_session_stays_and_goes_elsewhere() -> None:
    fields: dict[str, JsonValue] = {"session": "0123456789ab", "text": "0123456789ab"}
    assert redactor("0123456789ab").fields(fields)[0] == {
        "session": "0123456789ab",
        "text": mark_of("known", "0123456789ab"),
    }


def test_marks_that_were_made_before_count_in_a_record_and_forged_ones_do_not() -> None:
    one = redactor("known-value-1")
    once = one.redact("a known-value-1")
    fields: dict[str, JsonValue] = {"content": f"{once} [redacted:known:00000000]", "more": "known-value-1"}
    assert one.fields(fields)[1] == {"known": 2}


def test_the_marks_of_a_record_are_those_of_the_rules_that_it_counts() -> None:
    made, forged = "[redacted:known:01234567]", "[redacted:github:01234567]"
    record: dict[str, JsonValue] = {"content": f"{made} {forged}", "deep": [{"a": made}]}
    assert marks_of(record) == frozenset()
    assert marks_of({**record, "masked": {"known": 2}}) == {made}
    assert marks_of({**record, "masked": "known"}) == frozenset()


@given(st.lists(st.text(alphabet=ALNUM + "-_%/ \"'\\", min_size=8, max_size=30), max_size=30), st.data())
@settings(max_examples=examples(200), deadline=None)
def test_of_many_known_values_each_is_found_wherever_it_begins(values: list[str], data: st.DataObject) -> None:
    one = Redactor(values, key=KEY, shapes=False)
    for form in one.forms:
        before = data.draw(st.integers(0, 9))
        assert form not in one.redact("x" * before + form + "y")


def test_every_text_of_a_record_is_redacted_and_names_and_numbers_stay() -> None:
    value = "known-value-1"
    fields: dict[str, JsonValue] = {
        value: 1, "text": f"a {value}", "list": [value, 2, [value], {"deep": value}], "none": None, "yes": True, "part": 1.5,
    }  # fmt: skip
    mark = mark_of("known", value)
    redacted, hits = redactor(value).fields(fields)
    assert hits == {"known": 4}
    assert redacted == {
        value: 1, "text": f"a {mark}", "list": [mark, 2, [mark], {"deep": mark}], "none": None, "yes": True, "part": 1.5,
    }  # fmt: skip
    assert fields["text"] == f"a {value}"  # what was given is as it was
    assert list(redacted) == list(fields)


def test_a_secret_is_found_in_each_text_of_a_record_for_itself() -> None:
    """Two texts side by side make no secret together, and hide none."""
    fields: dict[str, JsonValue] = {
        "a": "known-val",
        "b": "ue-1",
        "c": 'token": ',
        "d": f'"password":"{chance(ALNUM, 24)}"',
    }
    redacted, hits = redactor("known-value-1").fields(fields)
    assert hits == {"assigned": 1}
    assert (redacted["a"], redacted["b"], redacted["c"]) == ("known-val", "ue-1", 'token": ')


@all_rows("kind", ["list", "dict"])
def test_a_record_may_be_ten_thousand_deep(kind: str) -> None:
    value: JsonValue = "known-value-1"
    for _ in range(10_000):
        value = [value] if kind == "list" else {"a": value}
    redacted, hits = redactor("known-value-1").fields({"deep": value})
    found: JsonValue = redacted["deep"]
    while isinstance(found, list | dict):
        found = found[0] if isinstance(found, list) else found["a"]
    assert (found, hits) == (mark_of("known", "known-value-1"), {"known": 1})


@all_rows(
    "text", ["\ud800known-value-1\udfff", "\x00known-value-1\x00", "İİ known-value-1 İ", "\U000e0041known-value-1"]
)
def test_odd_characters_beside_a_secret_do_not_matter(text: str) -> None:
    assert redactor("known-value-1").redact(text) == text.replace("known-value-1", mark_of("known", "known-value-1"))


def test_a_secret_of_lone_surrogates_has_a_mark_too() -> None:
    secret = "\ud800abc\udc80defgh"
    assert re.fullmatch(r"\[redacted:known:[0-9a-f]{8}\]", redactor(secret).redact(secret))


def test_capitals_that_become_two_letters_do_not_shift_the_mark() -> None:
    secret = chance(ALNUM, 24)
    text = f'İİİ İ PASSWORD = "{secret}" İ'
    assert redactor().redact(text) == text.replace(secret, mark_of("assigned", secret))


PIECES = st.sampled_from(
    [make() for make in PLANTED.values()]
    + [credential(name)[1] for name in CREDENTIALS]
    + [pem(lines=2)[0], "known-value-1", "other known value", "[redacted:known:01234567]", "[redacted:", "]", " ", "\n", "\\n",
       '"', "'", "=", ": ", "password", "token: ", "://u:", "@h", "Bearer ", "eyJ", "a", "Z9", "\ud800", "漢"]
)  # fmt: skip
TEXTS = st.lists(st.one_of(PIECES, st.text(max_size=12)), max_size=12).map("".join)
KNOWN = st.text(min_size=8, max_size=40).filter(
    lambda value: len(value.strip()) >= 8 and not is_ordinary(value.strip())
)


@given(TEXTS)
@settings(max_examples=examples(300), deadline=None)
def test_redaction_is_idempotent(text: str) -> None:
    one = redactor("known-value-1", "other known value")
    once = one.redact(text)
    assert one.redact_and_count(once) == (once, {})


@given(KNOWN, st.lists(st.one_of(TEXTS, st.text(max_size=30)), max_size=4), st.integers(0, 5))
@settings(max_examples=examples(300), deadline=None)
def test_a_known_value_survives_in_no_text_at_any_depth(secret: str, around: list[str], depth: int) -> None:
    one = redactor(secret)
    text = secret.join(["", *around, ""])
    value: JsonValue = text
    for level in range(depth):
        value = [value, text] if level % 2 else {"a": value, "b": text}
    redacted, hits = one.fields(
        {"value": value, "json": json.dumps(text), "url": quote(text.encode("utf-8", "replace"))}
    )
    assert sum(hits.values()) >= 1
    left = list(redacted.values())
    while left:
        one_value = left.pop()
        if isinstance(one_value, str):
            assert secret.strip() not in re.sub(r"\[redacted:[a-z_-]+:[0-9a-f]{8}\]", "\0", one_value)
        elif isinstance(one_value, dict | list):
            left += one_value.values() if isinstance(one_value, dict) else one_value


@given(st.text(alphabet=string.ascii_lowercase + " \n.,;()[]{}<>=+-*/'\"\\0123", max_size=400))
@settings(max_examples=examples(300), deadline=None)
def test_text_without_a_secret_stays(text: str) -> None:
    assert Redactor(["Known-Value-1"], key=KEY, shapes=False).redact(text) == text


@given(
    st.text(max_size=200),
    st.dictionaries(st.text(max_size=5), st.one_of(st.integers(), st.none(), st.text(max_size=50))),
)
@settings(max_examples=examples(200), deadline=None)
def test_fields_are_redacted_as_their_texts_alone(text: str, others: dict[str, JsonValue]) -> None:
    one = redactor("known-value-1")
    redacted, _ = one.fields({**others, "text": text})
    assert redacted == {
        name: one.redact(value) if isinstance(value, str) else value for name, value in {**others, "text": text}.items()
    }


def stream(one: Redactor, pieces: list[str]) -> list[str]:
    made = RedactedStream(one)
    return [*(made.feed(piece) for piece in pieces), made.finish()]


@given(TEXTS, st.integers(1, 40))
@settings(max_examples=examples(300), deadline=None)
def test_a_text_in_pieces_shows_no_more_than_the_whole(text: str, size: int) -> None:
    one = redactor("known-value-1", "other known value")
    shown = "".join(stream(one, [text[at : at + size] for at in range(0, len(text), size)]))
    for secret in ("known-value-1", "other known value"):
        assert secret not in shown
    whole = one.redact(text)
    for word in re.findall(r"[A-Za-z0-9_-]{20,}", shown):
        assert word in whole


STREAMED = [*(make() for make in PLANTED.values()), "known-value-1", "other known value", "ünd noch was"]


@all_rows("secret", STREAMED, ids=range(len(STREAMED)))
@all_rows("size", [1, 3, 1000])
def test_a_secret_that_comes_in_pieces_is_never_shown(secret: str, size: int) -> None:
    one = redactor("known-value-1", "other known value", "ünd noch was")
    text = f"words before {secret} and after, other known things\n"
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    assert "".join(stream(one, pieces)) == one.redact(text)
    assert is_redacted(one.redact(text))


KINDS = {
    **{name: made() for name, made in PLANTED.items()},
    **{f"{name} where it stands": credential(name)[1] for name in CREDENTIALS},
    "key": pem()[0],
    "key in json": json.dumps(pem()[0]),
    "key listed": "".join(f"{n:6d}\t{line}\n" for n, line in enumerate(pem()[0].splitlines(), 1)),
    **{f"encoded, {name}": dress(PLANTED["github"]()) for name, dress in DRESSES.items()},
    **{f"value, {name}": text for name, text in encodings(SECRET)},
    "value of words": "correct horse battery staple",
    "long value in lines": base64.encodebytes(VALUES["long"].encode()).decode(),
    "long value, indented": "\n".join(f"    {VALUES['long'][at : at + 30]}" for at in range(0, 164, 30)),
    "long value, escaped": "\\r\\n".join(VALUES["long"][at : at + 30] for at in range(0, 164, 30)),
    "password of other letters": "see postgres://änn:pässwört1@db.example/x",
    "other letters, assigned": 'api_key = "äB3dE5gH7jK9mN1pé"',
}


@all_rows("kind", list(KINDS))
def test_streamed_redaction_equals_that_of_the_entire_text(kind: str) -> None:
    """Cut by chance, and letter by letter."""
    one, draw = redactor(SECRET, VALUES["a sentence"], VALUES["long"]), random.Random()
    for _ in range(proof_size("STREAMS", 2, full=12)):
        before = draw.choice(("", "\n", "the words before ", "漢字", "a line\nand ", "'", "("))
        after = draw.choice(("", "\n", " the words after\n", "漢字", "\n\nx", "'", "."))
        text = before + KINDS[kind] + after
        cuts = sorted(draw.sample(range(len(text)), draw.randint(0, len(text) // 2)))
        pieces = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
        assert "".join(stream(one, pieces)) == one.redact(text), pieces
        assert "".join(stream(one, list(text))) == one.redact(text), text


STREAMS = {
    "words": ("", "the quick answer "),
    "one word": ("", "a1"),
    "code": ("", 'token = key["secret"] + password\n'),
    "an unended key": ("-----BEGIN PRIVATE KEY-----\n", "M" * 64 + "\n"),
    "line ends": ("", "\n"),
    "other letters": ("", "漢字。"),
    "base64": ("", "QUJDREVGR0hJSktMTU5P"),
    "lines of base64": ("", "QUJDREVGR0hJSktMTU5P" * 4 + "\n"),
}


@all_rows("name", list(STREAMS))
def test_the_work_of_a_stream_is_linear(name: str) -> None:
    """What the regular expressions take is timed by bench/growth.py."""
    (begin, unit), one = STREAMS[name], redactor("known-value-1", "other known value")

    def pieces(size: int) -> list[str]:
        text = begin + unit * (size // len(unit))
        return [text[at : at + 3] for at in range(0, len(text), 3)]

    for size in (750, 3_000):
        assert_linear(pieces, lambda pieces: stream(one, pieces), size)
    long = pieces(20_000)  # a key that goes on for longer is given out
    assert "".join(stream(one, long)) == one.redact("".join(long))


def test_ordinary_text_is_given_out_word_by_word() -> None:
    words = ["Hello", ",", " the", " answer", " is", " 漢字", "テキスト", "。", " Go", "od"]
    assert stream(redactor("known-value-1"), words) == [
        "",
        "",
        "Hello, ",
        "the ",
        "answer ",
        "is 漢字",
        "テキスト",
        "。",
        " ",
        "",
        "Good",
    ]


@all_rows("size", [1, 5, 64, 200])
def test_a_private_key_in_pieces_is_one_mark(size: int) -> None:
    one = redactor()
    text = f"the key:\n{pem(lines=40)[0]}that was it\n"
    assert "".join(stream(one, [text[at : at + size] for at in range(0, len(text), size)])) == one.redact(text)


def test_text_held_back_is_bounded() -> None:
    made = RedactedStream(redactor("known value with blanks"))
    held = given_out = 0
    for _ in range(300):
        given_out += len(made.feed("x1" * 500))
        held = max(held, 1000 * (_ + 1) - given_out)
    assert held < 20_000
    block = RedactedStream(redactor())
    block.feed("-----BEGIN PRIVATE KEY-----\n")
    shown = sum(len(block.feed("M" * 64 + "\n")) for _ in range(3000))
    assert shown < 3000 * 65


def test_the_forms_of_a_value_are_those_that_are_documented() -> None:
    assert set(forms_of("Abcdef12")) == {"Abcdef12", b"Abcdef12".hex(), b"Abcdef12".hex().upper()} | {
        form for form in forms_of("Abcdef12") if form in base64.b64encode(b"Abcdef12").decode()
    }


@all_rows("value", ["getAccessTokenForUser", "oauth2_token_endpoint", "correct-horse-battery", "aaaaaaaaaaaaaaaa1"])
def test_names_and_words_are_not_by_chance(value: str) -> None:
    assert not is_chance(value)


def test_each_shape_is_planted_at_least_once() -> None:
    planted = {rule_of(name) for name in (*PLANTED, *CREDENTIALS)} | {"key_block"}
    assert {shape.rule for shape in SHAPES} == planted
    assert len(planted) >= 40


def test_a_text_without_the_words_of_a_shape_is_not_looked_at() -> None:
    assert {shape.rule for shape in shapes_for("plain words")} == set()
    assert {shape.rule for shape in shapes_for("see ghp_ here")} == {"github"}


def test_a_secret_that_is_learnt_later_is_masked_from_then_on() -> None:
    redactor = Redactor(["first-S3cret-11aa22bb"])
    assert redactor.redact("later-S3cret-33cc44dd") == "later-S3cret-33cc44dd"
    redactor.learn("later-S3cret-33cc44dd")
    for secret in ("first-S3cret-11aa22bb", "later-S3cret-33cc44dd"):
        assert secret not in redactor.redact(f"it is {secret}")
