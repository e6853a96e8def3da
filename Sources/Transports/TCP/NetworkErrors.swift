import Glibc
import NighCore
import NighUV

extension SocketFault {
    /// Returns the error of a dial to `address`.
    func dialError(_ address: SocketAddress) -> NighError {
        NighError(
            .connecting, cause, peer: address.description, transport: TCPTransport.schemeName,
            advice: dialAdvice(address))
    }

    private func dialAdvice(_ address: SocketAddress) -> String? {
        switch number {
        case ECONNREFUSED: "is the program running there, and is \(address.port) its port?"
        case ENETUNREACH, EHOSTUNREACH, ENETDOWN, EHOSTDOWN, EADDRNOTAVAIL:
            address.isIPv6
                ? "does this machine have IPv6 on that network?" : "are both devices on the same network?"
        case ENODEV: "the interface does not exist; `ip link` lists the interfaces"
        case ETIMEDOUT: Self.silenceAdvice(address.port)
        case EACCES, EPERM: Self.firewallAdvice(address.port)
        default: shortageAdvice
        }
    }

    /// Returns the error of listening on `port`.
    func listenError(port: UInt16, interface: String?) -> NighError {
        let advice: String? =
            switch number {
            case EADDRINUSE: "port \(port) is in use: choose another, or leave out port= to get a free one"
            case EACCES where port < 1024: "ports below 1024 are for root: choose another"
            case EADDRNOTAVAIL: "no interface of this machine has that address"
            case ENODEV: "there is no interface \(interface ?? ""); `ip link` lists the interfaces"
            case EPERM where interface != nil:
                "binding to an interface is not allowed here: leave out interface="
            default: shortageAdvice
            }
        return NighError(
            .advertising, UVError(code: -number).cause, transport: TCPTransport.schemeName, advice: advice)
    }

    static func silenceAdvice(_ port: UInt16) -> String {
        "is the device switched on and on the same network, and does no firewall drop TCP port \(port)?"
    }

    private static func firewallAdvice(_ port: UInt16) -> String {
        "a firewall of this machine forbids it: allow TCP to port \(port)"
    }
}
