import NighCore

/// The address of a peer that another peer can reach: `via://CARRIER/PEER`, with both PeerIDs in full.
package struct RelayAddress: Hashable, Comparable, Sendable, CustomStringConvertible {
    /// The scheme of such addresses, and of their transport.
    package static let scheme = "via"

    /// The peer that carries the pipe.
    package let carrier: PeerID
    /// The peer at the other end of the pipe.
    package let peer: PeerID

    /// Creates the address of `peer`, through `carrier`.
    package init(carrier: PeerID, peer: PeerID) {
        self.carrier = carrier
        self.peer = peer
    }

    /// Reads an address. Fails if it is not of the form that `description` writes.
    package init(_ address: TransportAddress) throws(NighError) {
        let parts = address.value.split(separator: "/", omittingEmptySubsequences: false)
        guard address.scheme == Self.scheme, parts.count == 2, let carrier = PeerID(String(parts[0])),
            let peer = PeerID(String(parts[1]))
        else {
            throw NighError(
                .connecting, .invalid("address \(address)"), transport: Self.scheme,
                advice: "use \(Self.scheme)://CARRIER/PEER with two PeerIDs of 52 characters")
        }
        guard carrier != peer else {
            throw NighError(
                .connecting, .invalid("address \(address), where a peer carries a pipe to itself"),
                transport: Self.scheme, advice: "name another peer as the carrier")
        }
        self.init(carrier: carrier, peer: peer)
    }

    /// The address as transports and sessions use it.
    package var transportAddress: TransportAddress {
        TransportAddress(scheme: Self.scheme, value: "\(carrier)/\(peer)")
    }

    /// The form `via://CARRIER/PEER`.
    package var description: String { transportAddress.description }

    /// Orders addresses by carrier, then by peer.
    package static func < (left: RelayAddress, right: RelayAddress) -> Bool {
        left.carrier == right.carrier ? left.peer < right.peer : left.carrier < right.carrier
    }
}

/// The name of a stream that is a pipe for others. It says where the pipe leads.
package enum RelayStreamName: Hashable, Sendable, CustomStringConvertible {
    /// The opening side asks the other side, the carrier, for a pipe to this peer.
    case to(PeerID)
    /// The opening side is the carrier; this peer has asked for the pipe.
    case from(PeerID)

    /// Reads a name. Fails if it is not of the form that `description` writes.
    package init(_ name: String) throws(NighError) {
        let parts = name.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        switch (parts.first, parts.last.flatMap { PeerID(String($0)) }) {
        case ("to", let peer?): self = .to(peer)
        case ("from", let peer?): self = .from(peer)
        default:
            throw NighError(
                .conversing, .invalid("name of a relay stream"), transport: RelayAddress.scheme,
                advice: "name it to:PEERID or from:PEERID")
        }
    }

    /// The form `to:PEERID` or `from:PEERID`.
    package var description: String {
        switch self {
        case .to(let peer): "to:\(peer)"
        case .from(let peer): "from:\(peer)"
        }
    }
}
