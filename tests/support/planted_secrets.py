"""Secrets to be planted, and texts to plant them in; made by chance when a test runs: no scanner takes one for a leak."""

from __future__ import annotations

import base64
import json
import random
import re
import string
import uuid
from collections.abc import Callable

ALNUM = string.ascii_letters + string.digits
HEX = "0123456789abcdef"
CAPITALS = string.ascii_uppercase + string.digits
WORD = ALNUM + "_-"
BASE64 = ALNUM + "+/"
_chance = random.Random(20240229)


def chance(alphabet: str, count: int) -> str:
    """Return letters of an alphabet, a digit, a small letter and a capital among them if it has any."""
    while True:
        made = "".join(_chance.choices(alphabet, k=count))
        kinds = [set(kind) for kind in (string.digits, string.ascii_lowercase, string.ascii_uppercase)]
        if all(not kind & set(alphabet) or kind & set(made) for kind in kinds) and made[-1] not in "-_":
            return made


def b64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def token() -> str:
    return ".".join((b64url(b'{"alg":"HS256","typ":"JWT"}'), b64url(b'{"sub":"1234567890"}'), chance(WORD, 43)))


PLANTED: dict[str, Callable[[], str]] = {
    "aws_access_key": lambda: "AKIA" + chance(CAPITALS, 16),
    "aws_access_key of a session": lambda: "ASIA" + chance(CAPITALS, 16),
    "github": lambda: "ghp" + "_" + chance(ALNUM, 36),
    "github oauth": lambda: "gho" + "_" + chance(ALNUM, 36),
    "github user": lambda: "ghu" + "_" + chance(ALNUM, 36),
    "github server": lambda: "ghs" + "_" + chance(ALNUM, 36),
    "github refresh": lambda: "ghr" + "_" + chance(ALNUM, 76),
    "github fine-grained": lambda: "github" + "_pat_" + chance(ALNUM, 22) + "_" + chance(ALNUM, 59),
    "gitlab": lambda: "glpat" + "-" + chance(ALNUM, 20),
    "gitlab routable": lambda: "glpat" + "-" + chance(WORD, 27) + ".01." + chance(ALNUM.lower(), 9),
    "gitlab deploy": lambda: "gldt" + "-" + chance(ALNUM, 20),
    "openai": lambda: "sk" + "-" + chance(ALNUM, 20) + "T3BlbkFJ" + chance(ALNUM, 20),
    "openai project": lambda: "sk" + "-proj-" + chance(WORD, 156),
    "openai, of another vendor": lambda: "sk" + "-" + chance(HEX, 32),
    "openai, of a router": lambda: "sk" + "-or-v1-" + chance(HEX, 64),
    "anthropic": lambda: "sk" + "-ant-api03-" + chance(WORD, 93) + "AA",
    "groq": lambda: "gsk" + "_" + chance(ALNUM, 52),
    "xai": lambda: "xai" + "-" + chance(ALNUM, 80),
    "perplexity": lambda: "pplx" + "-" + chance(ALNUM, 48),
    "replicate": lambda: "r8" + "_" + chance(ALNUM, 37),
    "hugging_face": lambda: "hf" + "_" + chance(string.ascii_letters, 34),
    "google_api_key": lambda: "AIza" + chance(WORD, 35),
    "google_oauth": lambda: "ya29" + ".a0Af" + chance(WORD, 120),
    "google_oauth client": lambda: "GOCSPX" + "-" + chance(WORD, 28),
    "slack bot": lambda: "xoxb" + "-123456789012-1234567890123-" + chance(ALNUM, 24),
    "slack user": lambda: "xoxp" + "-123456789012-123456789012-1234567890123-" + chance(HEX, 32),
    "slack app": lambda: "xapp" + "-1-A0123456789-1234567890123-" + chance(HEX, 64),
    "stripe": lambda: "sk" + "_live_" + chance(ALNUM, 24),
    "stripe restricted": lambda: "rk" + "_live_" + chance(ALNUM, 99),
    "stripe webhook": lambda: "whsec" + "_" + chance(ALNUM, 32),
    "npm": lambda: "npm" + "_" + chance(ALNUM, 36),
    "pypi": lambda: "pypi" + "-AgEIcHlwaS5vcmc" + chance(WORD, 150),
    "rubygems": lambda: "rubygems" + "_" + chance(HEX, 48),
    "docker": lambda: "dckr" + "_pat_" + chance(WORD, 27),
    "sendgrid": lambda: "SG" + "." + chance(WORD, 22) + "." + chance(WORD, 43),
    "twilio": lambda: "SK" + chance(HEX, 32),
    "digitalocean": lambda: "dop" + "_v1_" + chance(HEX, 64),
    "databricks": lambda: "dapi" + chance(HEX, 32),
    "shopify": lambda: "shpat" + "_" + chance(HEX, 32),
    "mailgun": lambda: "key" + "-" + chance(HEX, 32),
    "vault": lambda: "hvs" + "." + chance(WORD, 90),
    "age": lambda: "AGE-SECRET" + "-KEY-1" + chance("QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58),
    "linear": lambda: "lin" + "_api_" + chance(ALNUM, 40),
    "tailscale": lambda: "tskey" + "-auth-" + chance(ALNUM, 12) + "-" + chance(ALNUM, 32),
    "grafana": lambda: "glsa" + "_" + chance(ALNUM, 32) + "_" + chance(HEX, 8),
    "grafana cloud": lambda: "glc" + "_" + chance(ALNUM, 80) + "==",
    "atlassian admin": lambda: "ATCTT" + "3xFfGN0" + chance(ALNUM, 180) + "=" + chance("0123456789ABCDEF", 8),
    "atlassian bitbucket": lambda: "ATBB" + chance(ALNUM, 32),
    "azure_client_secret": lambda: chance(ALNUM, 3) + "8" + "Q~" + chance(ALNUM, 34),
    "doppler": lambda: "dp" + ".pt." + chance(ALNUM, 43),
    "doppler service": lambda: "dp" + ".st.prd." + chance(ALNUM, 43),
    "postman": lambda: "PMAK" + "-" + chance(HEX, 24) + "-" + chance(HEX, 34),
    "terraform": lambda: chance(ALNUM, 14) + ".atlas" + "v1." + chance(ALNUM, 67),
    "planetscale": lambda: "pscale" + "_tkn_" + chance(ALNUM, 43),
    "pulumi": lambda: "pul" + "-" + chance(HEX, 40),
    "artifactory": lambda: "AKC" + "p" + chance(ALNUM, 69),
    "square": lambda: "EAA" + "A" + chance(ALNUM, 60),
    "square application": lambda: "sq0" + "csp-" + chance(ALNUM, 43),
    "heroku": lambda: "HRKU" + "-AA" + chance(ALNUM, 58),
    "notion": lambda: "ntn" + "_" + chance("0123456789", 11) + chance(ALNUM, 35),
    "figma": lambda: "figd" + "_" + chance(ALNUM, 40),
    "sentry": lambda: "sntrys" + "_eyJpYXQiO" + chance(ALNUM, 120) + "==_" + chance(ALNUM, 43),
    "sentry user": lambda: "sntryu" + "_" + chance(HEX, 64),
    "new_relic": lambda: "NRAK" + "-" + chance(CAPITALS, 27),
    "supabase": lambda: "sbp" + "_" + chance(HEX, 40),
    "supabase secret": lambda: "sb" + "_secret_" + chance(ALNUM, 31),
    "dropbox": lambda: "sl" + ".u." + chance(WORD, 180),
    "fly": lambda: "fo1" + "_" + chance(ALNUM, 43),
    "fly macaroon": lambda: "fm2" + "_" + chance(BASE64, 200),
    "password_hash sha512": lambda: "$6$" + chance(ALNUM, 16) + "$" + chance(ALNUM, 86),
    "password_hash bcrypt": lambda: "$2y$05$" + chance(ALNUM, 53),
    "password_hash yescrypt": lambda: "$y$j9T$" + chance(ALNUM, 22) + "$" + chance(ALNUM, 43),
    "password_hash apr1": lambda: "$apr1$" + chance(ALNUM, 8) + "$" + chance(ALNUM, 22),
    "password_hash argon2": lambda: "$argon2id$v=19$m=65536,t=3,p=4$" + chance(ALNUM, 22) + "$" + chance(ALNUM, 43),
    "password_hash ldap": lambda: "{SSHA}" + chance(ALNUM, 32),
    "atlassian": lambda: "ATATT" + "3xFfGF0" + chance(ALNUM, 180) + "=" + chance("0123456789ABCDEF", 8),
    "jwt": token,
}
"""What is a secret wherever it stands: the first word is the rule."""

CONTEXTS: dict[str, Callable[[str], str]] = {
    "alone": lambda secret: secret,
    "shell": lambda secret: f"export DEPLOY={secret}\nmake\n",
    "shell, quoted": lambda secret: f"curl -H 'X-Key: {secret}' https://example.com",
    "json": lambda secret: json.dumps({"content": f"first\n{secret}\nlast"}),
    "json in json": lambda secret: json.dumps({"arguments": json.dumps({"content": f"a\n{secret}\tb"})}),
    "yaml": lambda secret: f"services:\n  web:\n    value: {secret}\n    other: 1\n",
    "address": lambda secret: f"https://example.com/path?value={secret}&page=2",
    "address, encoded": lambda secret: f"next=%2Fpath%3Fvalue%3D{secret}%26page%3D2",
    "header": lambda secret: f"X-Auth: {secret}\r\nAccept: */*\r\n",
    "python": lambda secret: f'client = Client("{secret}", timeout=3)\n',
    "diff": lambda secret: f"@@ -1 +1 @@\n-VALUE = 'old'\n+VALUE = '{secret}'\n",
    "added line alone": lambda secret: f"+{secret}\n",
    "coloured": lambda secret: f"\x1b[32m{secret}\x1b[0m\n",
    "markdown": lambda secret: f"Use `{secret}`, or **{secret}**.",
    "csv": lambda secret: f"1,{secret},2\n",
    "xml": lambda secret: f"<value>{secret}</value>",
    "listing": lambda secret: f"    12\t{secret}\n    13\tend\n",
    "sentence": lambda secret: f"The value is {secret}.",
}

DRESSES: dict[str, Callable[[str], str]] = {
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "base64, one character in front": lambda text: base64.b64encode(f" {text}".encode()).decode(),
    "base64 of a file": lambda text: base64.b64encode(f"a: 1\nb: {text}\nc: 2\n".encode()).decode(),
    "base64url": lambda text: b64url(f"??>{text}".encode()),
    "base64 in json": lambda text: json.dumps({"content": "x\n" + base64.b64encode(text.encode()).decode()}),
    "base64 of a secret of Kubernetes": lambda text: f"data:\n  key: {base64.b64encode(text.encode()).decode()}\n",
    "hex": lambda text: text.encode().hex(),
    "hex in capitals": lambda text: f"0x{text.encode().hex().upper()}",
}
"""Encodings of a secret that is known by its shape."""

CREDENTIALS: dict[str, tuple[Callable[[], str], str]] = {
    "aws_secret_key": (lambda: chance(BASE64, 40), "[default]\naws_secret_access_key = {}\n"),
    "aws_secret_key json": (lambda: chance(BASE64, 40), '{"SecretAccessKey": "{}"}'),
    "aws_secret_key env": (lambda: chance(BASE64, 40), "export AWS_SECRET_ACCESS_KEY={}\n"),
    "slack_webhook": (
        lambda: f"T{chance(CAPITALS, 10)}/B{chance(CAPITALS, 10)}/{chance(ALNUM, 24)}",
        "curl https://hooks.slack" + ".com/services/{}\n",
    ),
    "telegram": (lambda: "AA" + chance(WORD, 33), "https://api.telegram.org/bot123456789:{}/getMe"),
    "discord": (
        lambda: f"{chance(WORD, 6)}.{chance(WORD, 38)}",
        f"Authorization: Bot {b64url(b'123456789012345678')}.{{}}\n",
    ),
    "discord_webhook": (lambda: chance(WORD, 68), "https://discord.com/api/webhooks/123456789012345678/{}"),
    "azure_key": (
        lambda: chance(BASE64, 86) + "==",
        "DefaultEndpointsProtocol=https;AccountName=a;AccountKey={};EndpointSuffix=core.windows.net",
    ),
    "azure_key of a bus": (
        lambda: chance(BASE64, 43) + "=",
        "Endpoint=sb://a.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey={}",
    ),
    "azure_sas": (
        lambda: chance(ALNUM, 20) + "%2B" + chance(ALNUM, 22) + "%3D",
        "https://a.blob.core.windows.net/c?sv=2022-11-02&sp=r&sig={}",
    ),
    "bearer": (lambda: chance(ALNUM, 40), "curl -H 'Authorization: Bearer {}' https://example.com"),
    "bearer json": (lambda: chance(ALNUM, 40), '{"Authorization": "Bearer {}"}'),
    "basic": (
        lambda: base64.b64encode(b"ann:" + chance(ALNUM, 12).encode()).decode(),
        "authorization: basic {}\r\nAccept: */*",
    ),
    "url_password": (lambda: chance(ALNUM, 12), "postgresql://ann:{}@db.example:5432/app?sslmode=require"),
    "url_password alone": (lambda: chance(ALNUM, 12), "redis://:{}@localhost:6379/0"),
    "url_password json": (lambda: chance(ALNUM, 12), '"url":"https:\\/\\/ann:{}@git.example\\/r.git"'),
    "url_password word": (lambda: "hunter2", "git clone https://ann:{}@git.example/r.git"),
    "url_password proxy": (lambda: chance(ALNUM, 12), "https_proxy=http://ann:{}@10.0.0.1:3128"),
    "url_password encoded": (lambda: chance(ALNUM, 12), "next=https%3A%2F%2Fann%3A{}%40git.example%2Fr"),
    "url_password encoded in small letters": (lambda: chance(ALNUM, 12), "next=https%3a%2f%2fann%3a{}%40git.example"),
    "url_password srv": (lambda: chance(ALNUM, 12), "mongodb+srv://ann:{}@cluster0.example.net/?retryWrites=true"),
    "url_token": (lambda: chance(ALNUM, 32), "git clone https://{}@git.example/r.git"),
    "url_token and a name": (lambda: chance(ALNUM, 32), "https://{}:@api.example/v1"),
    "parameter": (lambda: chance(ALNUM, 32), "GET /v1/files?access_token={}&page=2"),
    "parameter signed": (lambda: chance(HEX, 64), "https://b.s3.example/o?X-Amz-Date=1&X-Amz-Signature={}"),
    "parameter sig": (lambda: chance(ALNUM, 32), "https://a.example/c?sp=r&sig={}"),
    "parameter encoded": (lambda: chance(ALNUM, 32), "next=%2Fv1%3Fapi_key%3D{}%26page%3D2"),
    "parameter jdbc": (lambda: "hunt3r2", "jdbc:postgresql://db.example/app?user=ann&password={}&ssl=true"),
    "parameter odbc": (lambda: "hunt3r2", "Server=db.example;Uid=ann;Pwd={};Encrypt=yes"),
    "basic docker": (
        lambda: base64.b64encode(b"ann:" + chance(ALNUM, 12).encode()).decode(),
        '{"auths": {"ghcr.io": {"auth": "{}"}}}',
    ),
    "basic npm": (
        lambda: base64.b64encode(b"ann:" + chance(ALNUM, 12).encode()).decode(),
        "//npm.example/:_auth={}\n",
    ),
    "npmrc": (
        lambda: str(uuid.UUID(int=_chance.getrandbits(128), version=4)),
        "registry=https://npm.example/\n//npm.example/:_authToken={}\nengine-strict=true\n",
    ),
    "npmrc password": (lambda: base64.b64encode(chance(ALNUM, 9).encode()).decode(), "//npm.example/:_password={}\n"),
    "heroku assigned": (lambda: str(uuid.UUID(int=_chance.getrandbits(128), version=4)), "HEROKU_API_KEY={}\n"),
    "cookie": (lambda: chance(ALNUM, 32), "Cookie: theme=dark; session={}; lang=en\r\nAccept: */*"),
    "cookie set": (lambda: chance(ALNUM, 32), "< Set-Cookie: sid={}; Path=/; HttpOnly\n"),
    "sql_password": (lambda: "hunter2", "ALTER USER ann WITH PASSWORD '{}';"),
    "sql_password mysql": (lambda: "hunter2", "CREATE USER 'ann'@'%' IDENTIFIED BY '{}';"),
    "command_password": (lambda: "hunter2", "curl -sS -u ann:{} https://api.example/v1"),
    "command_password mysql": (lambda: "hunter2", "mysqldump -h db.example -u ann -p{} app"),
    "pgpass": (lambda: "hunter2", "db.example:5432:app:ann:{}\n"),
    "assigned short": (lambda: chance(string.ascii_lowercase, 10) + "!q", "db_password: {}\n"),
    "assigned shell": (lambda: "Passw0rd" + chance(ALNUM, 3), "export DB_PASSWORD={}\n"),
    "netrc": (lambda: chance(ALNUM, 12), "machine git.example login ann password {}\n"),
    "netrc lines": (lambda: chance(ALNUM, 12), "machine git.example\n  login ann\n  password {}\n"),
    "assigned": (lambda: chance(ALNUM, 24), 'API_KEY = "{}"\n'),
    "assigned json": (lambda: chance(ALNUM, 24), '{"client_secret": "{}"}'),
    "assigned json in json": (lambda: chance(ALNUM, 24), '"{\\"password\\": \\"{}\\"}"'),
    "assigned yaml": (lambda: chance(ALNUM, 24), "db:\n  password: {}\n"),
    "assigned env": (lambda: chance(ALNUM, 32), "export STRIPE_SECRET_KEY={}\n"),
    "assigned hex": (lambda: chance(HEX, 32), "AZURE_API_KEY={}\n"),
    "assigned diff": (lambda: chance(ALNUM, 24), "-API_TOKEN=none\n+API_TOKEN={}\n"),
    "assigned ruby": (lambda: chance(ALNUM, 24), ":auth_token => '{}',\n"),
    "assigned go": (lambda: chance(ALNUM, 24), 'apiKey := "{}"\n'),
    "assigned signs": (lambda: "Gr8&" + chance(ALNUM, 10) + "!#", "DB_PASSWORD = '{}'\n"),
}
"""What is a secret by what stands before it: how it is made, and a text with its place; the first word is the rule."""


def credential(name: str) -> tuple[str, str]:
    """Return a secret and the text that it stands in."""
    made, text = CREDENTIALS[name]
    secret = made()
    return secret, text.replace("{}", secret)


def rule_of(name: str) -> str:
    """Return the rule that finds what is planted under this name."""
    return re.split("[ ,]", name)[0]
