"""Models of programs that reach the network; none of them is ever a reader. Data, and what tables cannot say. No I/O."""

from __future__ import annotations

from collections.abc import Mapping

from harness.actions import Access, Act
from harness.programs.gathered import Gathered, joined, never
from harness.programs.model import Found, Parsed, Program, Style, Unknown, Use, gap
from harness.programs.options import stricter
from harness.record import replace

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
"""With these, the names of what is written come from elsewhere."""


def _wget_writes(parsed: Parsed, use: Use) -> Use:
    """Without -O every address is written to a file of its last part, below the prefix."""
    written = Gathered()
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
            written.add_with([".1"], name, Access.WRITE)  # where it is there already: the first free number
    return replace(use, act=stricter(use.act, written.use().act), paths=(*use.paths, *written.paths))


_DIG_OPTIONS = "-x=TEXT -t=TEXT -c=TEXT -p=TEXT -q=TEXT -b=TEXT -4 -6 -u -r -f=READ -k=READ -v:info -h:info"


def _plain_files(_parsed: Parsed, use: Use) -> Use:
    """openssl takes a name with a colon for an address: `org.openssl.engine:` loads code."""
    return gap("a name with a colon, an address to openssl") if any(":" in path.word for path in use.paths) else use


def _dig_files(parsed: Parsed, use: Use) -> Use:
    return gap("+tls reads files") if any(word.startswith("+tls") for word in parsed.operands) else use


_NET = Program(network=True)
_OPENSSL = Program(style=Style.SINGLE, operands="", refine=_plain_files)

PROGRAMS: Mapping[str, Program] = {
    "wget": replace(_NET, options=_WGET_OPTIONS, operands="TEXT...", refine=_wget_writes),
    "ping": replace(
        _NET,
        options="-4 -6 -c=TEXT -i=TEXT -W=TEXT -w=TEXT -s=TEXT -I=TEXT -t=TEXT -n -q -D -O -v -V:info",
        operands="HOST...",
    ),
    "dig": replace(_NET, options=_DIG_OPTIONS, operands="HOST...", refine=_dig_files),
    "host": replace(_NET, options="-a -c=TEXT -C -d -l -r -s -t=TEXT -T -v -4 -6 -W=TEXT -R=TEXT", operands="HOST..."),
    "nslookup": replace(
        _NET, style=Style.SINGLE, options="-type=TEXT -query=TEXT -timeout=TEXT -port=TEXT -debug", operands="HOST..."
    ),
    "traceroute": replace(_NET, options="-4 -6 -n -I -T -U -m=TEXT -w=TEXT -q=TEXT -p=TEXT", operands="HOST..."),
    "whois": replace(_NET, options="-h=TEXT -p=TEXT -H", operands="HOST..."),
    "nc": replace(
        _NET,
        act=Act.CHANGES,
        options="-4 -6 -d -D -k -l -n -N -r -t -u -v -z -i=TEXT -p=TEXT -q=TEXT -s=TEXT -w=TEXT -e=CODE -c=CODE -U=CODE",
        operands="TEXT...",
    ),
    "telnet": never("it takes commands from its input, and `!` runs one here"),
    "ftp": never("it takes commands from its input, and `!` runs one here"),
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
}
