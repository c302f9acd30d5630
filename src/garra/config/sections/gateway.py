"""`gateway`: where it listens and whom it lets in."""

from typing import Annotated, Literal

from garra.config.sections.fields import Closed, Field, OpenSection, SecretText, Section, part


class RateLimit(Section):
    """How many wrong credentials an address may try before it is shut out for a while."""

    max_attempts: int = Field(10, ge=1)
    window_ms: int = Field(60_000, ge=1)
    lockout_ms: int = Field(300_000, ge=0)
    exempt_loopback: bool = True


class TrustedProxy(Section):
    """For `auth.mode` `trusted-proxy`: the header that carries the user, and who is let in."""

    user_header: str = "x-forwarded-user"
    required_headers: tuple[str, ...] = ()
    allow_users: tuple[str, ...] = ()
    allow_loopback: bool = False


class GatewayAuth(Section):
    """How a client proves that it may connect. Without a mode it is by token, or by password when only that is set."""

    mode: Annotated[Literal["none", "token", "password", "trusted-proxy"] | None, Closed("token")] = None
    token: SecretText | None = None
    password: SecretText | None = None
    allow_tailscale: bool = False
    rate_limit: RateLimit = part(RateLimit)
    trusted_proxy: TrustedProxy | None = None


class Endpoint(Section):
    """One of the HTTP interfaces that are off unless switched on."""

    enabled: bool = False


class Endpoints(Section):
    """The OpenAI-compatible interfaces."""

    chat_completions: Endpoint = part(Endpoint)
    responses: Endpoint = part(Endpoint)


class GatewayHttp(Section):
    """The HTTP interfaces of the gateway's port."""

    endpoints: Endpoints = part(Endpoints)


class ControlUi(Section):
    """The web page."""

    enabled: bool = True
    base_path: str = ""
    root: str = ""
    allowed_origins: tuple[str, ...] = ()
    allow_insecure_auth: bool = False
    dangerously_disable_device_auth: bool = False
    dangerously_allow_host_header_origin_fallback: bool = False


class Remote(Section):
    """The gateway that this machine's clients talk to when `mode` is `remote`."""

    url: str = ""
    transport: Literal["ssh", "direct"] = "ssh"
    token: SecretText | None = None
    password: SecretText | None = None


class Tls(Section):
    """Encryption at the gateway's own port."""

    enabled: bool = False
    auto_generate: bool = True
    cert_path: str = ""
    key_path: str = ""
    ca_path: str = ""


class Reload(Section):
    """Whether an edit of the file takes effect while the gateway runs."""

    mode: Literal["off", "hybrid"] = "hybrid"


class NodePairing(Section):
    """Which devices are admitted without being asked about."""

    auto_approve_local: bool = True
    auto_approve_cidrs: tuple[str, ...] = ()


class NodeCommands(Section):
    """What paired devices may be asked to do, beyond or without the defaults."""

    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()


class GatewayNodes(Section):
    """Paired devices."""

    pairing: NodePairing = part(NodePairing)
    commands: NodeCommands = part(NodeCommands)


class Tailscale(OpenSection):
    """Whether Tailscale forwards to the gateway: `serve` for one's own tailnet, `funnel` for the whole internet.

    Garra does not start Tailscale; it holds the door to what is said here.
    """

    mode: Annotated[Literal["off", "serve", "funnel"], Closed("funnel")] = "off"


class Names(Section):
    """Names allowed and names denied; a denial wins."""

    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()


class Gateway(Section):
    """Where the gateway listens and whom it lets in."""

    mode: Literal["local", "remote"] = "local"
    port: int = Field(18789, ge=1, le=65535)
    bind: Annotated[Literal["auto", "loopback", "lan", "tailnet", "custom"], Closed("loopback")] = "loopback"
    custom_bind_host: str = ""
    public_origin: str = ""
    auth: GatewayAuth = part(GatewayAuth)
    http: GatewayHttp = part(GatewayHttp)
    control_ui: ControlUi = part(ControlUi)
    trusted_proxies: tuple[str, ...] = ()
    allow_real_ip_fallback: bool = False
    remote: Remote = part(Remote)
    tls: Tls = part(Tls)
    tailscale: Tailscale = part(Tailscale)
    reload: Reload = part(Reload)
    nodes: GatewayNodes = part(GatewayNodes)
    tools: Names = part(Names)
