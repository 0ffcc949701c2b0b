"""The model of curl, whose values read files behind `@` and write them under names out of addresses. No I/O.

Facts: curl(1) 8.11, and 7.88 where it differs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from harness.actions import Access, Act
from harness.programs.gathered import Gathered, NotCoveredError
from harness.programs.model import Found, Parsed, Program, Unknown, Use, gap
from harness.programs.options import stricter
from harness.record import replace

_OPTIONS = """
    -o|--output=TEXT --output-dir=TEXT -O|--remote-name --remote-name-all -J|--remote-header-name
    -D|--dump-header=TEXT -c|--cookie-jar=TEXT --trace|--trace-ascii|--stderr|--libcurl|--etag-save=TEXT
    -d|--data|--data-ascii=TEXT:changes --data-binary=TEXT:changes --json=TEXT:changes --data-raw=TEXT:changes
    --data-urlencode=TEXT:changes -F|--form=TEXT:changes --form-string=TEXT:changes -T|--upload-file=TEXT:changes
    -H|--header=TEXT --proxy-header=TEXT -b|--cookie=TEXT -w|--write-out=TEXT -z|--time-cond=TEXT --url-query=TEXT
    -E|--cert|--proxy-cert=TEXT --cert-type=TEXT --key|--proxy-key=READ --key-type=TEXT --pass=TEXT
    --cacert|--proxy-cacert=READ --capath=READ --crlfile=READ --netrc-file=READ --etag-compare=READ
    -X|--request=TEXT -Q|--quote=TEXT:changes -G|--get -I|--head -L|--location --location-trusted --max-redirs=TEXT
    --post301 --post302 --post303 -f|--fail --fail-with-body --fail-early --remove-on-error --create-dirs --no-clobber
    -s|--silent --no-silent -S|--show-error -v|--verbose -i|--include|--show-headers -N|--no-buffer -#|--progress-bar
    --no-progress-meter --styled-output --no-styled-output --compressed --raw --trace-time --trace-ids
    -A|--user-agent=TEXT -e|--referer=TEXT -u|--user=TEXT --oauth2-bearer=TEXT --basic --digest --ntlm --negotiate
    --anyauth --aws-sigv4=TEXT -n|--netrc --netrc-optional -q|--disable -k|--insecure
    -m|--max-time=TEXT --connect-timeout=TEXT --retry=TEXT --retry-delay=TEXT --retry-max-time=TEXT --retry-connrefused
    --retry-all-errors --limit-rate=TEXT --rate=TEXT -Y|--speed-limit=TEXT -y|--speed-time=TEXT --keepalive-time=TEXT
    --no-keepalive -C|--continue-at=TEXT -r|--range=TEXT --max-filesize=TEXT -R|--remote-time -a|--append -l|--list-only
    -B|--use-ascii -g|--globoff --path-as-is --request-target=TEXT --ignore-content-length -j|--junk-session-cookies
    -Z|--parallel --parallel-max=TEXT --parallel-immediate --next
    -0|--http1.0 --http1.1 --http2 --http2-prior-knowledge --http3 --http0.9 -1|--tlsv1 --tlsv1.0 --tlsv1.1 --tlsv1.2
    --tlsv1.3 --tls-max=TEXT --ciphers=TEXT --tls13-ciphers=TEXT --pinnedpubkey=READ --ssl --ssl-reqd --cert-status
    -4|--ipv4 -6|--ipv6 --interface=TEXT --resolve=TEXT --connect-to=TEXT --dns-servers=TEXT --doh-url=TEXT
    --local-port=TEXT --tcp-nodelay --tcp-fastopen --no-alpn --no-sessionid
    -x|--proxy=TEXT --noproxy=TEXT -U|--proxy-user=TEXT -p|--proxytunnel --proxy-insecure --socks5=TEXT
    --socks5-hostname=TEXT --socks4=TEXT --socks4a=TEXT --preproxy=TEXT --url=TEXT
    -K|--config=CODE --engine=CODE --unix-socket=CODE --abstract-unix-socket=CODE --proto-default=CODE --hsts=CODE
    --alt-svc=CODE --ssl-sessions=CODE
    -V|--version:info -h|--help:info
"""
# A Unix socket may be that of a service that obeys (docker); --variable and --expand-* read files by name: not vouched for.

_WRITTEN = ("-D", "-c", "--trace")
_PLAIN_ADDRESS = re.compile(r"(https?|ftps?)://[^\n]*", re.IGNORECASE)
_BARE_ADDRESS = re.compile(r"[A-Za-z0-9.-]+(:[0-9]+)?([/?#][^\n]*)?")
_READING_METHODS = ("GET", "HEAD", "OPTIONS")


def _files(parsed: Parsed, use: Use) -> Use:
    """Add the files that values and addresses name. An address of another kind (file:, scp:) is a gap."""
    gathered = Gathered()
    addresses = (*parsed.operands, *parsed.values("--url"))
    try:
        for address in addresses:
            _check_address(address)
        for given in parsed.options:
            if given.value is not None and given.name in _MAY_READ:
                _read_by(given.name, given.value, gathered)
        _written(parsed, addresses, gathered)
    except NotCoveredError as problem:
        return gap(str(problem))
    act = stricter(use.act, gathered.use().act)
    if any(method not in _READING_METHODS for method in parsed.values("-X")):
        act = stricter(act, Act.CHANGES)
    return replace(use, act=act, paths=(*use.paths, *gathered.paths))


def _check_address(address: str) -> None:
    known = address.prefix if isinstance(address, Unknown) else address
    if isinstance(address, Found) or not (_PLAIN_ADDRESS.fullmatch(known) or _BARE_ADDRESS.fullmatch(known)):
        raise NotCoveredError(f"{address} is not an address of the web")
    if isinstance(address, Unknown) and not re.match(r"https?://[^/]", known):
        raise NotCoveredError(f"the address {address} is not known")


_MAY_READ = {
    "-d": r"[^@]",
    "--data-binary": r"[^@]",
    "--json": r"[^@]",
    "-H": r"[^@]",
    "--proxy-header": r"[^@]",
    "--data-urlencode": r"[^=@]*=",
    "--url-query": r"[^=@]*=",
    "-b": r"[^=@]+=",
    "-w": "",
    "-F": "",
    "-E": "",
    "-T": "",
    "-z": "",
}
"""Options whose value may name a file that is read, each with the beginning by which a value is text for sure."""


_REFUSED = {"-w": "%output", "-T": r"[{\[]", "-E": r"^pkcs11:|\\"}
"""A format that writes files, a pattern, a key that loads a library."""


def _read_by(name: str, value: str, gathered: Gathered) -> None:
    text = _MAY_READ[name]
    if isinstance(value, Unknown | Found):
        if not text or isinstance(value, Found) or not re.match(text, value.prefix):
            raise NotCoveredError(f"{name} {value} may name a file")
        return
    if text and re.match(text, value):
        return
    refused = _REFUSED.get(name)
    if refused and re.search(refused, value):
        raise NotCoveredError(f"{name} {value} is not plain")
    match name:
        case "-F":
            file = _form_file(value)
        case "-E":
            file = value.partition(":")[0]
        case "-b" | "-T" | "-z":
            file = value.removeprefix("@")
        case _:
            # @FILE; for --data-urlencode also NAME@FILE.
            file = value.partition("@")[2]
    if file not in ("", "-", "."):
        gathered.add(file, Access.READ)


def _form_file(value: str) -> str:
    """Return the file of `-F NAME=@FILE;type=...`."""
    content = value.partition("=")[2]
    if "headers=" in content or (content[:1] in ("@", "<") and re.search(r'[",\\]', content)):
        raise NotCoveredError(f"-F {value} may name several files")
    return content[1:].partition(";")[0] if content[:1] in ("@", "<") else ""


def _written(parsed: Parsed, addresses: tuple[str, ...], gathered: Gathered) -> None:
    folder = (parsed.values("--output-dir") or ("",))[-1]
    if isinstance(folder, Unknown | Found):
        raise NotCoveredError(f"--output-dir {folder} is not known")
    for word in parsed.values("-o"):
        if re.search(r"#[0-9]", word):
            gathered.add(folder or ".", Access.WRITE, tree=True)
        if word != "-":
            gathered.add(word, Access.WRITE, folder=folder)
    for word in parsed.values(*_WRITTEN):
        if word not in ("-", "%"):
            gathered.add(word, Access.WRITE)
    for address in addresses if parsed.has("-O", "--remote-name-all") else ():
        name = _remote_name(address)
        if not name or parsed.has("-J"):
            gathered.add(folder or ".", Access.WRITE, tree=True)
        else:
            gathered.add(name, Access.WRITE, folder=folder)


def _remote_name(address: str) -> str:
    """Return the file that -O writes for an address, or nothing where that is not plain."""
    if isinstance(address, Unknown) or re.search(r"[{\[]", address):
        return ""
    path = re.split(r"[?#]", address.partition("://")[2] or address)[0]
    return path.partition("/")[2].rpartition("/")[2]


PROGRAMS: Mapping[str, Program] = {"curl": Program(network=True, options=_OPTIONS, operands="TEXT...", refine=_files)}
