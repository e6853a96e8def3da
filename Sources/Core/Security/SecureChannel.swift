/// What stands between a link's frames and its pipe once the prefaces have chosen it: TLS, or nothing.
///
/// It does no I/O: bytes of the pipe go in and plain bytes come out, and the other way round. The link machine owns one for
/// each pipe and calls it on the loop. Plain bytes appear only after the channel knows who is at the other end. Where a
/// call throws, `wire` may still have got an alert that tells the other side why; no other call is useful afterwards.
protocol SecureChannel: AnyObject {
    /// Whether the handshake is done and frames may pass.
    var isEstablished: Bool { get }

    /// Who is at the other end, proven by the handshake; nil before it is done, and always where the channel proves
    /// nothing.
    var provenPeer: PeerID? { get }

    /// Whether the handshake was shortened by a ticket of an earlier one.
    var wasResumed: Bool { get }

    /// Begins the handshake; what is to be written goes to `wire`.
    func begin(wire: inout ByteQueue) throws(NighError)

    /// Takes bytes of the pipe. Decrypted ones go to `plain`, replies of the handshake to `wire`. Where it throws, `plain` has
    /// got what was authenticated before.
    func receive(_ bytes: ByteSlice, plain: inout ByteQueue, wire: inout ByteQueue) throws(NighError)

    /// Takes all of `plain`, and puts what stands for it on the pipe into `wire`.
    func seal(_ plain: inout ByteQueue, into wire: inout ByteQueue) throws(NighError)

    /// Says that nothing more will come (TLS close_notify); nothing may be sealed afterwards.
    func end(wire: inout ByteQueue)

    /// Bytes only the two ends of this very handshake can compute (TLS exporter, RFC 8446 7.5); nil before it is done, or
    /// where nothing is secret.
    func keyingMaterial(label: String, context: [UInt8], count: Int) -> SecretBytes?

    /// Gives the other side a ticket for its next link; for the accepting side.
    func giveTicket(wire: inout ByteQueue)

    /// The newest ticket the other side gave, once; the dialling side keeps it for its next link to that peer.
    func takeTicket() -> ResumptionTicket?

    /// Lets go of memory that only traffic needs; called when the link has been idle for a while.
    func releaseIdleMemory()

    /// Bytes held inside: received and not decrypted, or to be written and not yet handed out.
    var heldByteCount: Int { get }
}

/// Which end of the pipe a link is: the accepting one is the server of a TLS handshake.
package enum LinkSide {
    case dialling
    case accepting
}

/// Which kinds of security this session would use, and how to begin one.
struct SecureChannelOffer: Sendable {
    /// Makes the channel of one link. `expected` is whom the link was dialled for, if that is known; the ticket is one
    /// that this peer gave before.
    typealias Make =
        @Sendable (Preface.Security, LinkSide, _ expected: PeerID?, ResumptionTicket?) -> any SecureChannel

    let accepted: Preface.Security
    let make: Make

    /// Frames go as they are. Proves nothing about who is at the other end.
    static let plaintext = SecureChannelOffer(accepted: .plaintext) { _, _, _, _ in PlaintextChannel() }

    /// TLS 1.3 and nothing else.
    static func tls(_ context: TLSContext) -> SecureChannelOffer {
        SecureChannelOffer(accepted: .tls13) { _, side, expected, ticket in
            TLSChannel(context, side: side, expected: expected, ticket: ticket)
        }
    }
}

/// Passes bytes through by reference.
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

    func giveTicket(wire: inout ByteQueue) {}

    func takeTicket() -> ResumptionTicket? { nil }

    func releaseIdleMemory() {}
}
