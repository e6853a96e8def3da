/// The layer between a link's frames and its pipe: TLS, or nothing. The prefaces choose which.
///
/// It does no I/O: it turns bytes of the pipe into plain bytes, and plain bytes into bytes for the pipe.
/// Each link machine owns one and calls it on the loop. Plain bytes come out only after the channel knows
/// who is at the other end. If a call throws, `wire` may contain an alert that tells the other side why;
/// after that, no other call is useful.
protocol SecureChannel: AnyObject {
    /// Whether the handshake has ended, so that frames may pass.
    var isEstablished: Bool { get }

    /// The peer at the other end, as the handshake has proven. Nil before the handshake has ended, and
    /// always for a channel that proves nothing.
    var provenPeer: PeerID? { get }

    /// Whether a ticket from an earlier handshake shortened this one.
    var wasResumed: Bool { get }

    /// Begins the handshake. Appends the bytes to write to `wire`.
    func begin(wire: inout ByteQueue) throws(NighError)

    /// Handles bytes received from the pipe. Appends decrypted bytes to `plain`, and replies of the handshake to
    /// `wire`. If it throws, `plain` has the bytes that were authenticated before.
    func receive(_ bytes: ByteSlice, plain: inout ByteQueue, wire: inout ByteQueue) throws(NighError)

    /// Removes all bytes from `plain` and appends them in sealed form to `wire`.
    func seal(_ plain: inout ByteQueue, into wire: inout ByteQueue) throws(NighError)

    /// Tells the other side that nothing more will come (TLS close_notify). Nothing may be sealed afterwards.
    func end(wire: inout ByteQueue)

    /// Returns bytes that only the two ends of this handshake can compute (TLS exporter, RFC 8446, 7.5). Nil before the
    /// handshake has ended, or if the channel has no secret.
    func keyingMaterial(label: String, context: [UInt8], count: Int) -> SecretBytes?

    /// How datagrams are protected: with the cipher that protects the link.
    var datagramProtection: DatagramProtection { get }

    /// Sends the other side a ticket for its next link. For the accepting side.
    func sendTicket(wire: inout ByteQueue)

    /// Returns the newest ticket from the other side, once. The dialling side keeps it for its next link to that peer.
    func takeTicket() -> ResumptionTicket?

    /// Releases memory that only traffic needs. Called when the link has been idle for a while.
    func releaseIdleMemory()

    /// The number of bytes held in the channel: received and not decrypted yet, or
    /// to be written and not handed out yet.
    var heldByteCount: Int { get }
}

/// The side of a pipe that a link is on. The accepting side is the server of a TLS handshake.
package enum LinkSide {
    case dialling
    case accepting
}

/// The kinds of security that a session accepts, with a function that creates the channel.
struct SecureChannelOffer: Sendable {
    /// Creates the channel of one link. `expected` is the peer for which the link was dialled, if known. The
    /// ticket is one that this peer gave before.
    typealias Make =
        @Sendable (Preface.Security, LinkSide, _ expected: PeerID?, ResumptionTicket?) -> any SecureChannel

    let accepted: Preface.Security
    let make: Make

    /// Frames are sent in plaintext. This does not prove who is at the other end.
    static let plaintext = SecureChannelOffer(accepted: .plaintext) { _, _, _, _ in PlaintextChannel() }

    /// TLS 1.3 only.
    static func tls(_ context: TLSContext) -> SecureChannelOffer {
        SecureChannelOffer(accepted: .tls13) { _, side, expected, ticket in
            TLSChannel(context, side: side, expected: expected, ticket: ticket)
        }
    }
}

/// A channel that passes bytes through unchanged, by reference.
final class PlaintextChannel: SecureChannel {
    let isEstablished = true
    let provenPeer: PeerID? = nil
    let wasResumed = false
    let heldByteCount = 0

    func begin(wire: inout ByteQueue) {}

    func receive(_ bytes: ByteSlice, plain: inout ByteQueue, wire: inout ByteQueue) { plain.append(bytes) }

    func seal(_ plain: inout ByteQueue, into wire: inout ByteQueue) { wire.append(contentsOf: &plain) }

    func end(wire: inout ByteQueue) {}

    func keyingMaterial(label: String, context: [UInt8], count: Int) -> SecretBytes? { nil }

    let datagramProtection = DatagramProtection.checksum

    func sendTicket(wire: inout ByteQueue) {}

    func takeTicket() -> ResumptionTicket? { nil }

    func releaseIdleMemory() {}
}
