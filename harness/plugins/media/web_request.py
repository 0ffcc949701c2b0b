"""One GET request to a judged address, limited in size and time.

INVARIANT: the name is resolved once, and the connection goes to a checked IP address, even if the name resolves to
another one later. Requests use no cookies, no credentials and no proxy from the environment.
"""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from harness.errors import ToolError
from harness.plugins.media.web_address import WebAddress, redirected
from harness.policy.hosts import HostPattern, address_problem
from harness.record import Record
from harness.text.visible import visible_line

MOST_BYTES = 2_000_000
"""Maximum size of a body in bytes, both compressed and decompressed. The rest is not read."""
MOST_REDIRECTS = 5
_BLOCK = 65_536
_REDIRECTS = (301, 302, 303, 307, 308)
_HEADERS = {
    "User-Agent": "harness",
    "Accept": "text/html, text/*;q=0.9, application/json;q=0.9, */*;q=0.1",
    "Accept-Encoding": "gzip",
    "Connection": "close",
}


class WebAnswer(Record):
    """The answer to a request."""

    address: WebAddress
    """The address of the answer, after redirects within the host."""
    status: int
    media_type: str
    """Media type in lower case, without parameters. Empty if the answer has none."""
    charset: str
    body: bytes
    is_cut: bool
    """Whether the body was longer than MOST_BYTES."""
    leads_to: WebAddress | None = None
    """Target of a redirect to another host, which was not followed."""


class Deadline:
    """The deadline of a request. It also ends a request whose server sends slowly but steadily."""

    def __init__(self, seconds: float, monotonic: Callable[[], float]) -> None:
        """Start a deadline of `seconds` from now. `monotonic` is a clock in seconds."""
        self.seconds = seconds
        self._monotonic = monotonic
        self._end = monotonic() + seconds
        self.is_over = False

    @property
    def seconds_left(self) -> float:
        """Seconds until the deadline. Raises ToolError after it."""
        seconds = self._end - self._monotonic()
        if seconds <= 0 or self.is_over:
            raise ToolError(self.words)
        return seconds

    @property
    def words(self) -> str:
        """Error message for a request that exceeded the deadline."""
        return f"The request took longer than {self.seconds:g} s, and was ended."

    @contextmanager
    def ends(self, connection: socket.socket) -> Iterator[None]:
        """Shut the connection down at the deadline, which also ends a blocked read. Active during the block."""
        twin = connection.dup()  # TLS detaches the socket object; the duplicate refers to the same connection

        def end() -> None:
            self.is_over = True
            try:
                twin.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # the connection has ended already

        timer = threading.Timer(self.seconds_left, end)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            twin.close()


def fetched(
    address: WebAddress,
    patterns: Sequence[HostPattern],
    deadline: Deadline,
    *,
    wants: Callable[[str], bool],
    trusted: ssl.SSLContext | None = None,
) -> WebAnswer:
    """Fetch an address, and return the answer. Raises ToolError if it cannot, or must not, be fetched.

    `patterns` are the hosts that rules name. The body is read only if `wants` accepts its media type. `trusted` has the
    trusted certificates; `None` for the system's.
    """
    for _ in range(MOST_REDIRECTS + 1):
        try:
            answer = _request(address, patterns, deadline, wants, trusted)
        except ToolError:
            raise
        except ssl.SSLCertVerificationError as error:
            raise ToolError(
                f"{address.place} has no valid certificate: {visible_line(error.verify_message, 200)}."
            ) from None
        except (OSError, http.client.HTTPException, zlib.error) as error:
            if deadline.is_over or isinstance(error, TimeoutError):
                raise ToolError(deadline.words) from None
            error_text = visible_line(str(error) or type(error).__name__, 200)
            raise ToolError(f"{address.place} could not be asked: {error_text}.") from None
        if answer.leads_to is None or not address.is_same_place(answer.leads_to):
            return answer
        address = answer.leads_to
    raise ToolError(f"{address.place} redirects more than {MOST_REDIRECTS} times; the last leads to {address.text}.")


def looked_up(address: WebAddress, patterns: Sequence[HostPattern], deadline: Deadline) -> tuple[str, ...]:
    """Resolve a host, and return its checked IP addresses. Raises ToolError if one is forbidden or there are none."""
    addresses: list[str] = []
    failed: list[str] = []

    def look_up() -> None:
        try:
            infos = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
            addresses.extend(dict.fromkeys(str(info[4][0]) for info in infos))
        except (OSError, UnicodeError) as error:
            failed.append(str(error))

    # On its own thread, since the system's resolver has no time limit, and signals do not end it.
    thread = threading.Thread(target=look_up, daemon=True)
    thread.start()
    thread.join(deadline.seconds_left)
    if thread.is_alive():
        raise ToolError(deadline.words)
    if not addresses:
        reason = visible_line(failed[0], 200) if failed else "it has no address"
        raise ToolError(f"The host {address.host} was not found: {reason}.")
    for ip_address in addresses:  # one forbidden address is enough to refuse the host
        if problem := address_problem(patterns, ip_address, address.port):
            raise ToolError(
                f"{address.host} leads to an address that must not be reached: {problem} (built-in private-address). "
                "Nothing was sent."
            )
    return tuple(addresses)


def _request(
    address: WebAddress,
    patterns: Sequence[HostPattern],
    deadline: Deadline,
    wants: Callable[[str], bool],
    trusted: ssl.SSLContext | None,
) -> WebAnswer:
    connection = http.client.HTTPConnection(address.host, address.port)
    plain = _connected(looked_up(address, patterns, deadline), address.port, deadline)
    try:
        with deadline.ends(plain):
            if address.scheme == "https":
                context = trusted or ssl.create_default_context()
                connection.sock = context.wrap_socket(plain, server_hostname=address.host)
            else:
                connection.sock = plain
            connection.request("GET", address.target, headers={"Host": address.place, **_HEADERS})
            response = connection.getresponse()
            answer = _answer(address, response, wants)
            if deadline.is_over:  # after a shutdown, the answer seems complete
                raise ToolError(deadline.words)
            return answer
    finally:
        connection.close()
        plain.close()


def _connected(addresses: Sequence[str], port: int, deadline: Deadline) -> socket.socket:
    """Return a connection to the first address that accepts one. Raises OSError."""
    problem: OSError = OSError("no address")
    for ip_address in addresses:
        try:
            return socket.create_connection((ip_address, port), timeout=deadline.seconds_left)
        except OSError as error:
            problem = error
    raise problem


def _answer(address: WebAddress, response: http.client.HTTPResponse, wants: Callable[[str], bool]) -> WebAnswer:
    media_type = response.headers.get_content_type() if response.headers.get("Content-Type") else ""
    charset = response.headers.get_content_charset() or ""
    location = response.headers.get("Location")
    leads_to = None
    if response.status in _REDIRECTS and location:
        try:
            leads_to = redirected(address, location)
        except ToolError as error:
            raise ToolError(f"{address.place} redirects to an invalid address: {error}") from None
    body, is_cut = b"", False
    if leads_to is None and wants(media_type):
        body, is_cut = _body(response)
    return WebAnswer(
        address=address,
        status=response.status,
        media_type=media_type,
        charset=charset,
        body=body,
        is_cut=is_cut,
        leads_to=leads_to,
    )


def _body(response: http.client.HTTPResponse) -> tuple[bytes, bool]:
    """Return the decompressed body, and whether it was cut. Raises ToolError for an unexpected or incomplete coding."""
    coding = (response.headers.get("Content-Encoding") or "identity").strip().lower()
    if coding not in ("identity", "gzip", "x-gzip"):
        raise ToolError(f"The answer is packed as {visible_line(coding, 50)}, which was not asked for.")
    unpack = None if coding == "identity" else zlib.decompressobj(wbits=31)
    content, came = bytearray(), 0
    while len(content) <= MOST_BYTES and came <= MOST_BYTES:
        block = response.read1(_BLOCK)
        if not block:
            if unpack is not None and not unpack.eof:
                raise ToolError("The packed answer ended before its end.")
            return bytes(content), False
        came += len(block)
        content += block if unpack is None else unpack.decompress(block, MOST_BYTES + 1 - len(content))
        if unpack is not None and unpack.eof:
            return bytes(content[:MOST_BYTES]), len(content) > MOST_BYTES
    return bytes(content[:MOST_BYTES]), True
