"""Programs that reach the network: curl, wget, dig, ssh, rsync (which also copies on this machine) and similar.

The model of curl(1) covers 8.11, and 7.88 where it differs. Values with `@FILE` read files, and -O writes a file named
after the address.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from harness.actions import Access, Act
from harness.programs.options import stricter
from harness.programs.program import Found, LooseWords, Parsed, Program, Style, Unknown, Use, gap, joined
from harness.programs.shared import CommandPaths, NotCoveredError
from harness.record import replace
from harness.regex import regex

# --- curl

_CURL_OPTIONS = """
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
# Not covered: Unix sockets, because a service such as docker's may take commands there, and --variable and --expand-*,
# which read files by name.

_CURL_WRITES = ("-D", "-c", "--trace")
_PLAIN_ADDRESS = regex(r"(https?|ftps?)://[^\n]*", re.IGNORECASE)
_BARE_ADDRESS = regex(r"[A-Za-z0-9.-]+(:[0-9]+)?([/?#][^\n]*)?")
_READING_METHODS = ("GET", "HEAD", "OPTIONS")


def _curl_files(parsed: Parsed, use: Use) -> Use:
    """Add the files that values and addresses name. An address that is not HTTP or FTP (file:, scp:) is a gap."""
    gathered = CommandPaths()
    addresses = (*parsed.operands, *parsed.values("--url"))
    try:
        for address in addresses:
            _check_curl_address(address)
        for option in parsed.options:
            if option.value is not None and option.name in _CURL_MAY_READ:
                _curl_reads(option.name, option.value, gathered)
        _curl_written(parsed, addresses, gathered)
    except NotCoveredError as problem:
        return gap(str(problem))
    act = stricter(use.act, gathered.use().act)
    if any(method not in _READING_METHODS for method in parsed.values("-X")):
        act = stricter(act, Act.CHANGES)
    return replace(use, act=act, paths=(*use.paths, *gathered.paths))


def _check_curl_address(address: str) -> None:
    text = address.prefix if isinstance(address, Unknown) else address
    if isinstance(address, Found) or not (_PLAIN_ADDRESS.fullmatch(text) or _BARE_ADDRESS.fullmatch(text)):
        raise NotCoveredError(f"{address} is not an address of the web")
    if isinstance(address, Unknown) and not re.match(r"https?://[^/]", text):
        raise NotCoveredError(f"the address {address} is not known")


_CURL_MAY_READ = {
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
"""Options whose value may name a file to read. Each has a pattern for the start of values that are text for sure."""


_CURL_REFUSES = {"-w": "%output", "-T": r"[{\[]", "-E": r"^pkcs11:|\\"}
"""Patterns of values that are a gap: a format that writes files, a pattern of files, a key that loads a library."""


def _curl_reads(name: str, value: str, gathered: CommandPaths) -> None:
    text = _CURL_MAY_READ[name]
    if isinstance(value, Unknown | Found):
        if not text or isinstance(value, Found) or not re.match(text, value.prefix):
            raise NotCoveredError(f"{name} {value} may name a file")
        return
    if text and re.match(text, value):
        return
    refused = _CURL_REFUSES.get(name)
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
            # The value is @FILE, or NAME@FILE for --data-urlencode.
            file = value.partition("@")[2]
    if file not in ("", "-", "."):
        gathered.add(file, Access.READ)


def _form_file(value: str) -> str:
    """Return the file in `-F NAME=@FILE;type=...`, or an empty string.

    Raises NotCoveredError if there may be several.
    """
    content = value.partition("=")[2]
    if "headers=" in content or (content[:1] in ("@", "<") and re.search(r'[",\\]', content)):
        raise NotCoveredError(f"-F {value} may name several files")
    return content[1:].partition(";")[0] if content[:1] in ("@", "<") else ""


def _curl_written(parsed: Parsed, addresses: tuple[str, ...], gathered: CommandPaths) -> None:
    folder = (parsed.values("--output-dir") or ("",))[-1]
    if isinstance(folder, Unknown | Found):
        raise NotCoveredError(f"--output-dir {folder} is not known")
    for word in parsed.values("-o"):
        if re.search(r"#[0-9]", word):
            gathered.add(folder or ".", Access.WRITE, tree=True)
        if word != "-":
            gathered.add(word, Access.WRITE, folder=folder)
    for word in parsed.values(*_CURL_WRITES):
        if word not in ("-", "%"):
            gathered.add(word, Access.WRITE)
    for address in addresses if parsed.has("-O", "--remote-name-all") else ():
        name = _remote_name(address)
        if not name or parsed.has("-J"):
            gathered.add(folder or ".", Access.WRITE, tree=True)
        else:
            gathered.add(name, Access.WRITE, folder=folder)


def _remote_name(address: str) -> str:
    """Return the file that -O writes for an address. Empty if its name is unclear."""
    if isinstance(address, Unknown) or re.search(r"[{\[]", address):
        return ""
    path = re.split(r"[?#]", address.partition("://")[2] or address)[0]
    return path.partition("/")[2].rpartition("/")[2]


# --- wget and others

# wget(1), 1.21.
_WGET_OPTIONS = """
    -O|--output-document=TEXT -P|--directory-prefix=TEXT -o|--output-file|-a|--append-output=WRITE
    -q|--quiet -v|--verbose -nv|--no-verbose -d|--debug -S|--server-response --spider -c|--continue -N|--timestamping
    -nc|--no-clobber -nd|--no-directories -nH|--no-host-directories -np|--no-parent -x|--force-directories
    --cut-dirs=TEXT -t|--tries=TEXT -T|--timeout=TEXT --connect-timeout=TEXT --read-timeout=TEXT --dns-timeout=TEXT
    -w|--wait=TEXT --waitretry=TEXT --random-wait --retry-connrefused --retry-on-http-error=TEXT --progress=TEXT
    --show-progress --limit-rate=TEXT -Q|--quota=TEXT -4|--inet4-only -6|--inet6-only --no-proxy --no-config
    -U|--user-agent=TEXT --header=TEXT --referer=TEXT --user=TEXT --password=TEXT --http-user=TEXT --http-password=TEXT
    --auth-no-challenge --method=TEXT:changes --post-data|--body-data=TEXT:changes --post-file|--body-file=READ:changes
    --load-cookies=READ --save-cookies=WRITE --keep-session-cookies --no-cookies --no-cache --no-hsts
    --no-check-certificate --ca-certificate|--certificate|--private-key=READ --https-only --secure-protocol=TEXT
    --max-redirect=TEXT --compression=TEXT --content-on-error --no-netrc
    -r|--recursive -l|--level=TEXT -k|--convert-links -p|--page-requisites -m|--mirror -E|--adjust-extension
    -A|--accept|-R|--reject|-D|--domains=TEXT -H|--span-hosts --content-disposition --trust-server-names
    -e|--execute=CODE --use-askpass=CODE --config=CODE -i|--input-file=CODE
    -V|--version:info -h|--help:info
"""
_WGET_MANY = ("-r", "-p", "-m", "-x", "-E", "-A", "--content-disposition", "--trust-server-names")
"""Options with which wget writes files whose names do not appear in the command."""


def _wget_writes(parsed: Parsed, use: Use) -> Use:
    """Add the files that wget writes. Without -O, each address gives a file named after its last part, in the prefix
    folder.
    """
    written = CommandPaths()
    outs, prefixes = parsed.values("-O"), parsed.values("-P") or ("",)
    if any(isinstance(value, Unknown | Found) for value in (*outs, *prefixes)):
        return gap("the name of what is written is not known")
    if outs:
        for out in outs:
            if out != "-":
                written.add(out, Access.WRITE)
    elif parsed.has(*_WGET_MANY) or any(
        isinstance(word, Unknown) or {"%", "?"} & set(word) for word in parsed.operands
    ):
        written.add(prefixes[-1] or ".", Access.WRITE, tree=True)
    elif not parsed.has("--spider"):
        for address in parsed.operands:
            path = (address.partition("://")[2] or address).partition("/")[2]
            name = joined(prefixes[-1], path.rpartition("/")[2] or "index.html")
            written.add_with([".1"], name, Access.WRITE)  # if it exists, wget appends the first free number
    return replace(use, act=stricter(use.act, written.use().act), paths=(*use.paths, *written.paths))


_DIG_OPTIONS = "-x=TEXT -t=TEXT -c=TEXT -p=TEXT -q=TEXT -b=TEXT -4 -6 -u -r -f=READ -k=READ -v:info -h:info"


def _openssl_files(_parsed: Parsed, use: Use) -> Use:
    """Return a gap for a name with a colon. openssl reads it as an address: `org.openssl.engine:` loads code."""
    return gap("a name with a colon, an address to openssl") if any(":" in path.word for path in use.paths) else use


def _dig_files(parsed: Parsed, use: Use) -> Use:
    return gap("+tls reads files") if any(word.startswith("+tls") for word in parsed.operands) else use


_NET = Program(network=True)
_OPENSSL = Program(style=Style.SINGLE, operands="", refine=_openssl_files)


# --- ssh, scp, rsync


def _is_remote(word: str) -> bool:
    """Return whether scp and rsync read a word as a file on another machine: a colon before any slash (scp(1))."""
    return ":" in word.partition("/")[0] or "://" in word


# ssh(1), scp(1) of OpenSSH 9. Options for forwarding, other configurations and programs to run are left out or CODE.
_SSH_HARMLESS = frozenset(
    """
    addressfamily batchmode compression connectionattempts connecttimeout identitiesonly loglevel
    numberofpasswordprompts passwordauthentication port preferredauthentications pubkeyauthentication
    serveralivecountmax serveraliveinterval stricthostkeychecking tcpkeepalive user
    """.split()
)
_SSH_HOST = regex(r"[A-Za-z0-9_.\[\]:@/%][A-Za-z0-9_.\[\]:@/%-]*")
_SSH_OPTIONS = "-4 -6 -C -q -v -i=READ -c=TEXT -o=TEXT -F=CODE -J=CODE -S=CODE"


def _ssh_options(parsed: Parsed) -> str:
    for value in parsed.values("-o"):
        text = value.prefix if isinstance(value, Unknown) else value
        name = re.split(r"[= \t]", text, maxsplit=1)
        if len(name) < 2 or name[0].lower() not in _SSH_HARMLESS or "\n" in value or isinstance(value, Found):
            return f"-o {value} is not in the model of ssh"
    return ""


def _ssh_host(parsed: Parsed, use: Use) -> Use:
    """Refine ssh. It also reads options between the host and the command, which are a gap."""
    host, *words = parsed.operands or ("",)
    problem = _ssh_options(parsed)
    if not isinstance(host, Unknown) and (isinstance(host, Found) or not _SSH_HOST.fullmatch(host)):
        problem = problem or "ssh without a plain host"
    if words and words[0][:1] == "-":
        problem = problem or f"{words[0]} behind the host is an option of ssh"
    if words and isinstance(words[0], Unknown) and words[0].prefix[:1] in ("", "-"):
        problem = problem or f"{words[0]} behind the host may be an option of ssh"
    return gap(problem) if problem else replace(use, remote=" ".join(words))


def _copies(parsed: Parsed, use: Use, *, tree: bool) -> Use:
    """Add the local files of a copy. It writes the last operand and reads the others; remote files are left out."""
    if any(isinstance(word, Unknown) for word in parsed.operands) or len(parsed.operands) < 2:
        return gap("what is copied where is not known")
    if any(word.startswith("-") for word in parsed.operands):
        return gap("options behind the operands")
    *sources, target = parsed.operands
    paths = CommandPaths()
    for source in sources:
        if isinstance(source, Found) or not _is_remote(source):
            paths.add(source, Access.EITHER if parsed.has("--remove-source-files") else Access.READ, tree=tree)
    if isinstance(target, Found) or not _is_remote(target):
        paths.add(target, Access.WRITE, tree=True, entry=True)
    act = Act.WRITES if paths.paths and paths.paths[-1].access is not Access.READ else Act.CHANGES
    return replace(use, act=stricter(use.act, act), paths=(*use.paths, *paths.paths))


def _scp_copies(parsed: Parsed, use: Use) -> Use:
    problem = _ssh_options(parsed)
    return gap(problem) if problem else _copies(parsed, use, tree=parsed.has("-r"))


def _rsync_copies(parsed: Parsed, use: Use) -> Use:
    """Refine rsync. With one operand it lists that path. A colon or `rsync://` in an operand means another machine."""
    remote = any(_is_remote(word) and not isinstance(word, Found) for word in parsed.operands)
    if len(parsed.operands) == 1 and parsed.operands[0][:1] != "-" and not isinstance(parsed.operands[0], Unknown):
        copied_paths = CommandPaths()
        if not remote:
            copied_paths.add(parsed.operands[0], Access.READ, tree=True)
        return replace(use, network=remote, paths=(*use.paths, *copied_paths.paths))
    use = _copies(parsed, use, tree=True)
    return use if use.gap else replace(use, network=remote)


def _rsync_loses(words: LooseWords) -> Iterator[str]:
    if any(option.startswith(("--del", "--remove-source-files")) for option in words.options):
        yield "rsync deletes files"


# rsync(1), 3.2. Left out or CODE: filters, which may name files of filters, options that follow links outside, and
# folders relative to the target.
_RSYNC_OPTIONS = """
    -a|--archive -r|--recursive -v|--verbose -q|--quiet -n|--dry-run -l|--links -p|--perms -t|--times -g|--group
    -o|--owner -D -E|--executability -A|--acls -X|--xattrs -H|--hard-links -S|--sparse -W|--whole-file -R|--relative
    -u|--update -c|--checksum -I|--ignore-times --size-only -x|--one-file-system -d|--dirs -z|--compress -h
    --human-readable -P --partial --progress --inplace --append -i|--itemize-changes --stats --info=TEXT
    --ignore-existing --existing --delete --delete-before --delete-during --delete-after --delete-delay
    --delete-excluded --remove-source-files -m|--prune-empty-dirs --max-size=TEXT --min-size=TEXT --max-delete=TEXT
    --exclude=TEXT --include=TEXT --exclude-from|--include-from=READ --chmod=TEXT --no-perms --no-owner --no-group
    --bwlimit=TEXT --timeout=TEXT --numeric-ids --out-format=TEXT -4|--ipv4 -6|--ipv6 -s|--protect-args
    --log-file=WRITE --backup-dir|--partial-dir|-T|--temp-dir=CODE -b|--backup --suffix=TEXT --password-file=READ
    -e|--rsh=CODE --rsync-path=CODE -M|--remote-option=CODE -f|--filter=CODE --files-from=CODE --config=CODE
    --daemon:gap --write-batch|--only-write-batch|--read-batch=CODE
    -V|--version:info --help:info
"""


PROGRAMS: Mapping[str, Program] = {
    "curl": Program(network=True, options=_CURL_OPTIONS, operands="TEXT...", refine=_curl_files),
    "wget": replace(_NET, options=_WGET_OPTIONS, operands="TEXT...", refine=_wget_writes),
    "dig": replace(_NET, options=_DIG_OPTIONS, operands="HOST...", refine=_dig_files),
    "openssl": Program(
        subcommands={
            "version": replace(_OPENSSL, options="-a -v -d -b -o -p -f"),
            "x509": replace(
                _OPENSSL,
                options="""
                    -in=READ -inform=TEXT -noout -text -subject -issuer -dates -startdate -enddate -serial -fingerprint
                    -sha256 -sha1 -pubkey -purpose -email -ext=TEXT -hash -modulus -nameopt=TEXT -certopt=TEXT
                    -checkend=TEXT -checkhost=TEXT -out=WRITE -outform=TEXT
                """,
            ),
            "rand": replace(_OPENSSL, options="-hex -base64 -out=WRITE", operands="TEXT"),
            "s_client": replace(
                _OPENSSL,
                act=Act.CHANGES,
                network=True,
                options="-connect=TEXT -servername=TEXT -showcerts -brief -CAfile=READ -tls1_2 -tls1_3 -alpn=TEXT",
            ),
        }
    ),
    "ssh": Program(
        network=True,
        act=Act.CHANGES,
        style=Style.POSIX,
        options=_SSH_OPTIONS + " -a -k -n -N -T -t -x -b=TEXT -e=TEXT -l=TEXT -m=TEXT -p=TEXT -E=WRITE -V:info",
        operands="HOST TEXT...",
        refine=_ssh_host,
    ),
    "scp": Program(
        network=True,
        style=Style.POSIX,
        options=_SSH_OPTIONS + " -3 -B -O -p -r -T -l=TEXT -P=TEXT -D=CODE -X=CODE",
        operands="TEXT...",
        refine=_scp_copies,
    ),
    "rsync": Program(options=_RSYNC_OPTIONS, operands="TEXT...", refine=_rsync_copies, loses=_rsync_loses),
}
